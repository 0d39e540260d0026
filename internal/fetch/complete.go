package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"spamgate/blocklist/listfile"
)

// ErrTorn means that the last line of a list seems to be cut off.
var ErrTorn = errors.New("it does not end in a newline, as the copy does, so that it may be cut off")

// endKnown reports whether a response says where its body ends: by a length, by chunks
// (RFC 9112, section 6.3) or by the frames of HTTP/2. Otherwise the body ends with the
// connection, whoever ended that. TLS does not help: crypto/tls accepts an end without the
// alert for it, and a proxy whose server fails ends its own connection as usual.
func endKnown(res *http.Response) bool {
	return res.ProtoMajor >= 2 || res.ContentLength >= 0 || len(res.TransferEncoding) > 0
}

// checkWhole checks that a body is not cut off. Sure means that its end is known, as far as
// the transport goes; the publisher's own file may still be incomplete. Known is the state
// of the copy.
func (s Source) checkWhole(known state, d *draft, sure bool) error {
	end, err := endOf(d.reader(), sure, s.MaxBytes)
	switch {
	case err != nil:
		return fmt.Errorf("%w (%d bytes received, and the server sent no length): %w", ErrCut, d.size, err)
	case end != noNewline || known.SHA256 == "" || s.Force:
		return nil
	case sure && known.Torn == d.sum():
		return nil // it is the same again, so that it is not just being written
	}
	if before, err := s.copyEnds(); err != nil || before != newlineAtEnd {
		return err
	}
	if sure {
		return fmt.Errorf("%w: the next fetch accepts it if the server sends the same again", ErrTorn)
	}
	return fmt.Errorf("%w: the server sent no length, which would show it; if the list is whole, run spamgate lists fetch %s --force", ErrTorn, s.Name)
}

// copyEnds returns how the copy ends.
func (s Source) copyEnds() (ending, error) {
	tree, name := s.place()
	file, err := tree.Open(name)
	if err != nil {
		return anyEnd, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return anyEnd, err
	}
	return endOf(io.NewSectionReader(file, 0, info.Size()), false, s.MaxBytes)
}

// ending says how the text of a list ends.
type ending int

const (
	anyEnd       ending = iota // its format shows whether it is whole
	noNewline                  // in the middle of a line, or of the last one
	newlineAtEnd               // after a line
)

// endOf returns how a list ends. If the end of its file is not sure, a packed list or a
// JSON text that ends too early is an error.
func endOf(file *io.SectionReader, sure bool, maxBytes int64) (ending, error) {
	if file.Size() == 0 {
		return anyEnd, nil
	}
	content, isPacked, err := listfile.Unpack(file, maxBytes)
	if err != nil && !sure {
		return anyEnd, cutShort(err)
	}
	if err != nil {
		return anyEnd, nil
	}
	defer content.Close()
	last := &tail{}
	in := io.TeeReader(content, last)
	start := make([]byte, 512)
	n, _ := io.ReadFull(in, start) // the next Read returns an error again
	isJSON := startsJSON(start[:n])
	switch {
	case sure && (isPacked || isJSON):
		return anyEnd, nil
	case isJSON:
		return anyEnd, wholeJSON(io.MultiReader(bytes.NewReader(bytes.TrimPrefix(start[:n], []byte(mark))), content))
	case isPacked:
		if _, err := io.Copy(io.Discard, in); err != nil {
			return anyEnd, cutShort(err)
		}
	default:
		if _, err := file.ReadAt(last.last[:], file.Size()-1); err != nil {
			return anyEnd, err
		}
	}
	if last.last[0] == '\n' {
		return newlineAtEnd, nil
	}
	return noNewline, nil
}

// cutShort returns an error of unpacking if it means that the packed list ends too early.
// The reader of the list judges other errors.
func cutShort(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

const mark = "\uFEFF" // a byte order mark

// startsJSON reports whether a text starts as a JSON array or object does. The bracket of
// an address literal is not followed by any of these.
func startsJSON(s []byte) bool {
	s = bytes.TrimLeft(bytes.TrimPrefix(s, []byte(mark)), " \t\r\n")
	if len(s) == 0 || s[0] != '[' && s[0] != '{' {
		return false
	}
	rest := bytes.TrimLeft(s[1:], " \t\r\n")
	return len(rest) == 0 || bytes.IndexByte([]byte(`"{[]}`), rest[0]) >= 0
}

// wholeJSON checks that JSON texts, of which NDJSON has many, do not end in the middle.
func wholeJSON(r io.Reader) error {
	in := json.NewDecoder(r)
	depth := 0
	for {
		token, err := in.Token()
		switch {
		case err == io.EOF && depth > 0, err == io.ErrUnexpectedEOF:
			return errors.New("the JSON text ends in the middle")
		case err != nil:
			return nil // its reader says what else is wrong
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

// tail keeps the last byte that was written.
type tail struct{ last [1]byte }

func (t *tail) Write(p []byte) (int, error) {
	if len(p) > 0 {
		t.last[0] = p[len(p)-1]
	}
	return len(p), nil
}
