package listfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readJSON reads an array of strings (RFC 8259), each of which is an entry as
// in a plain list, without a comment. The file is never in memory as a whole,
// however it is broken into lines.
func readJSON(o *output, in *bufio.Reader) error {
	if err := skipMark(in); err != nil {
		return err
	}
	text := &textReader{in: in}
	s := jsonScanner{in: bufio.NewReaderSize(text, readBuffer), line: 1}
	err := s.array(o)
	o.result.Lines = text.lines()
	return err
}

// jsonScanner reads a JSON text byte by byte.
type jsonScanner struct {
	in     *bufio.Reader
	line   int
	buffer []byte // of raw
}

func (s *jsonScanner) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %w: %s", s.line, ErrSyntax, fmt.Sprintf(format, args...))
}

// next returns the next byte, white space aside.
func (s *jsonScanner) next() (byte, error) {
	for {
		c, err := s.byte()
		if err != nil || strings.IndexByte(" \t\r\n", c) < 0 {
			return c, err
		}
	}
}

func (s *jsonScanner) byte() (byte, error) {
	c, err := s.in.ReadByte()
	if err == io.EOF {
		return 0, s.wrong("it ends in the middle; it may have been cut short")
	}
	if c == '\n' {
		s.line++
	}
	return c, err
}

// array reads the whole text.
func (s *jsonScanner) array(o *output) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '[' {
		return s.wrong(`want an array of strings, ["example.com", "user@example.net"], got %q first`, c)
	}
	if c, err = s.next(); err != nil {
		return err
	}
	for first := true; c != ']' || !first; first = false {
		if c, err = s.element(o, c); err != nil {
			return err
		}
		if c == ']' {
			break
		}
		if c != ',' {
			return s.wrong("want a comma or ] behind an element, got %q", c)
		}
		if c, err = s.next(); err != nil {
			return err
		}
	}
	return s.nothing()
}

// nothing makes sure that the array is all there is.
func (s *jsonScanner) nothing() error {
	for {
		c, err := s.in.ReadByte()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case c == '\n':
			s.line++
		case strings.IndexByte(" \t\r", c) < 0:
			return s.wrong("want nothing behind the array, got %q", c)
		}
	}
}

// element reads an element that starts with c, and returns what follows it.
func (s *jsonScanner) element(o *output, c byte) (byte, error) {
	line := s.line
	switch {
	case c == '"':
		if err := s.string(o, line); err != nil {
			return 0, err
		}
		return s.next()
	case c == '[' || c == '{':
		what := map[byte]string{'[': "an array", '{': "an object"}[c]
		o.refuse(line, Problem{Text: string(c), What: what + " inside the array", Hint: "the array holds strings, an entry each"})
		if err := s.skip(); err != nil {
			return 0, err
		}
		return s.next()
	}
	return s.word(o, c)
}

// maxRaw is the longest string that is looked at, escapes and all: six bytes
// of them make one.
const maxRaw = 6 * MaxLine

// string reads a string, whose first quote has been read.
func (s *jsonScanner) string(o *output, line int) error {
	raw, err := s.raw()
	if err != nil {
		return err
	}
	if len(raw) > maxRaw {
		o.refuse(line, tooLong(string(raw[:maxText])))
		return nil
	}
	text, err := unescape(raw)
	if err != nil {
		return fmt.Errorf("line %d: %w: %w", line, ErrSyntax, err)
	}
	return o.uncommented(line, text)
}

// unescape returns the text of a string in quotes. What is printable ASCII
// without a backslash stands for itself.
func unescape(raw []byte) (string, error) {
	for _, c := range raw {
		if c < ' ' || c > '~' || c == '\\' {
			var text string
			err := json.Unmarshal(slices.Concat([]byte{'"'}, raw, []byte{'"'}), &text)
			return text, err
		}
	}
	return string(raw), nil
}

// raw returns what stands up to the closing quote, little more than maxRaw
// bytes of it, valid until the next call.
func (s *jsonScanner) raw() ([]byte, error) {
	raw := s.buffer[:0]
	defer func() { s.buffer = raw }()
	for {
		c, err := s.byte()
		if err != nil {
			return nil, err
		}
		if c == '"' {
			return raw, nil
		}
		if len(raw) <= maxRaw {
			raw = append(raw, c)
		}
		if c == '\\' {
			if c, err = s.byte(); err != nil {
				return nil, err
			}
			if len(raw) <= maxRaw {
				raw = append(raw, c)
			}
		}
	}
}

// skip reads up to the end of an array or object that has begun. It only counts
// brackets: what is inside is not used.
func (s *jsonScanner) skip() error {
	for depth := 1; depth > 0; {
		c, err := s.next()
		if err != nil {
			return err
		}
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"':
			if _, err := s.raw(); err != nil {
				return err
			}
		}
	}
	return nil
}

// word reads a number, true, false or null that begins with c.
func (s *jsonScanner) word(o *output, c byte) (byte, error) {
	line, text := s.line, []byte{}
	if strings.IndexByte(",]", c) >= 0 {
		return 0, s.wrong("want a string, got %q", c)
	}
	var err error
	for ; strings.IndexByte(",] \t\r\n", c) < 0; c, err = s.byte() {
		if err != nil {
			return 0, err
		}
		if text = append(text, c); len(text) > maxText {
			return 0, s.wrong("want a string, got %q", text)
		}
	}
	if err != nil {
		return 0, err
	}
	if !json.Valid(bytes.TrimSpace(text)) {
		return 0, s.wrong("want a string, got %q", text)
	}
	o.refuse(line, Problem{Text: string(text), What: "no string", Hint: "the array holds strings, an entry each"})
	if strings.IndexByte(",]", c) < 0 {
		return s.next()
	}
	return c, nil
}
