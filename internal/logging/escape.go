package logging

import (
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escaper escapes the characters that slog's handlers do not: DEL in both formats,
// and in JSON all other unprintable characters beyond ASCII, such as U+009B, which
// begins an escape sequence, and U+202E, which reverses the text after it. Both
// handlers write a record with one call and a newline at its end.
type escaper struct {
	w      io.Writer
	escape func(b []byte, r rune) []byte
	buf    []byte // reused; slog's lock guards it
}

// Write writes a line. If it wrote the whole line it returns len(line), even if the
// escaped line is longer.
func (e *escaper) Write(line []byte) (int, error) {
	if !harmful(line) {
		return e.w.Write(line)
	}
	e.buf = e.buf[:0]
	for rest := line; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if visible(r) || r == '\n' && n == len(rest) {
			e.buf = append(e.buf, rest[:n]...)
		} else {
			e.buf = e.escape(e.buf, r)
		}
		rest = rest[n:]
	}
	if _, err := e.w.Write(e.buf); err != nil {
		return 0, err
	}
	return len(line), nil
}

// harmful reports whether a line has a character that is not printable ASCII, as few
// lines do.
func harmful(line []byte) bool {
	for i, c := range line {
		if (c < ' ' || c >= 0x7F) && (c != '\n' || i != len(line)-1) {
			return true
		}
	}
	return false
}

// visible reports whether r needs no escape: it is printable and valid UTF-8.
func visible(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

// appendGoEscape appends r as strconv.Quote escapes it.
func appendGoEscape(b []byte, r rune) []byte {
	quoted := strconv.QuoteRuneToASCII(r)
	return append(b, quoted[1:len(quoted)-1]...)
}

// appendJSONEscape appends r as JSON escapes it in a string (RFC 8259, section 7).
// Outside of strings a line is printable ASCII.
func appendJSONEscape(b []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		b = fmt.Appendf(b, `\u%04x`, unit)
	}
	return b
}
