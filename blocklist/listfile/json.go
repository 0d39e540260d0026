package listfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readJSON reads the strings at a path of a JSON text (RFC 8259), or of several objects
// one after the other; see [Options.Column]. Each is an entry as in a plain list, without
// a comment. The file is never in memory as a whole.
func readJSON(o *output, in *bufio.Reader) error {
	if err := skipMark(in); err != nil {
		return err
	}
	r := &jsonReader{text: &textReader{in: in, limit: maxRecord}}
	r.Decoder = json.NewDecoder(r)
	r.UseNumber() // no number is out of range
	defer func() { o.result.Lines = r.text.lines() }()
	path, err := o.jsonPath(in)
	if err != nil {
		return r.wrong("%v", err)
	}
	w := &jsonWalk{jsonReader: r, o: o, path: strings.Join(path, ".")}
	first, err := w.token()
	switch {
	case err == io.EOF:
		return r.explain(err)
	case err != nil:
		return err
	case first == json.Delim('['):
		if err = w.array(path); err == nil {
			err = w.end()
		}
	case first == json.Delim('{'):
		err = w.objects(path)
	default:
		return r.wrong(`want an array of strings, ["example.com", "user@example.net"], or objects, got %v first`, first)
	}
	if err == nil && !w.reached {
		err = r.wrong("nothing is at %q; %s", w.path, pathHint)
	}
	return err
}

// element reads an element of the array.
func (o *output) element(line int, raw json.RawMessage) {
	if text, ok := stringOf(raw); ok {
		o.uncommented(line, text)
		return
	}
	p := Problem{Text: string(raw), What: "not a string", Hint: "the array holds strings, an entry each"}
	switch raw[0] {
	case '[':
		p.What = "an array inside the array"
	case '{':
		p.What, p.Hint = "an object inside the array", pathHint
	}
	o.refuse(line, p)
}

// stringOf returns the text of a string. Printable ASCII without a backslash needs
// no decoding.
func stringOf(raw json.RawMessage) (text string, ok bool) {
	for _, c := range raw {
		if c < ' ' || c > '~' || c == '\\' {
			return text, raw[0] == '"' && json.Unmarshal(raw, &text) == nil
		}
	}
	return string(raw[min(1, len(raw)-1) : len(raw)-1]), raw[0] == '"'
}

// jsonReader decodes a JSON text and counts its lines.
type jsonReader struct {
	*json.Decoder
	text  *textReader
	feeds []int64 // offsets of the line feeds after the last value
	past  int     // number of line feeds before them
}

// Read reads for the decoder, which reads ahead.
func (r *jsonReader) Read(p []byte) (int, error) {
	start := r.text.read
	n, err := r.text.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			r.feeds = append(r.feeds, start+int64(i))
		}
	}
	return n, err
}

// line returns the line in which the last value ends.
func (r *jsonReader) line() int {
	i := 0
	for i < len(r.feeds) && r.feeds[i] < r.InputOffset() {
		i++
	}
	r.feeds, r.past = r.feeds[i:], r.past+i
	return r.past + 1
}

// explain returns what is wrong with the text.
func (r *jsonReader) explain(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return r.wrong("it ends in the middle; it may have been cut short")
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return r.wrong("%v", syntax)
	}
	return err // of reading
}

func (r *jsonReader) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %w: %s", r.line(), ErrSyntax, fmt.Sprintf(format, args...))
}
