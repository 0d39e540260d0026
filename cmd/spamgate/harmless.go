package main

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// harmless writes text that came from strangers or lists to a terminal: what is
// not printable, an escape sequence or a change of the direction of writing
// among it, goes out as \u and the number.
type harmless struct{ w io.Writer }

func (h harmless) Write(p []byte) (int, error) {
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

// unusual reports what is looked at more closely: all but printable ASCII and the
// ends of lines and fields.
func unusual(r rune) bool { return (r < ' ' || r > '~') && r != '\n' && r != '\t' }
