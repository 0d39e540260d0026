package wire

import (
	"bytes"
	"io"
)

// Unstuff removes the dot-stuffing (RFC 5321, section 4.5.2) from text, which begins
// at the start of a line. It returns text itself if there is none.
func Unstuff(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte(".")) && !bytes.Contains(text, []byte("\n.")) {
		return text
	}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		if line[0] == '.' {
			line = line[1:]
		}
		out = append(out, line...)
	}
	return out
}

// Unstuffer is Unstuff for a text that comes in pieces of any length.
type Unstuffer struct {
	w      io.Writer
	inLine bool // the next byte does not begin a line
}

// NewUnstuffer returns an Unstuffer that writes to w.
func NewUnstuffer(w io.Writer) *Unstuffer { return &Unstuffer{w: w} }

// Write writes the next piece without dot-stuffing. It fails only if w does.
func (u *Unstuffer) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	inLine := p[n-1] != '\n'
	if !u.inLine && p[0] == '.' {
		p = p[1:]
	}
	u.inLine = inLine
	for {
		i := bytes.Index(p, []byte("\n."))
		if i < 0 {
			break
		}
		if _, err := u.w.Write(p[:i+1]); err != nil {
			return 0, err
		}
		p = p[i+2:]
	}
	_, err := u.w.Write(p)
	return n, err
}
