package term

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Escape returns a writer to w for text that came from strangers or lists. Runes that
// are not printable, such as escape sequences and changes of the writing direction, are
// written as \u and their number.
func Escape(w io.Writer) io.Writer { return escapingWriter{w} }

type escapingWriter struct{ w io.Writer }

func (h escapingWriter) Write(p []byte) (int, error) {
	if !bytes.ContainsFunc(p, unusual) {
		return h.w.Write(p)
	}
	var out bytes.Buffer
	for rest := p; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, rest[0])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			out.Write(rest[:n])
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	if _, err := h.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unusual reports whether a rune is anything but printable ASCII, a newline or a tab.
func unusual(r rune) bool { return (r < ' ' || r > '~') && r != '\n' && r != '\t' }
