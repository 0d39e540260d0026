package logging

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escaper escapes what slog's handlers let through to a terminal: DEL, in both
// formats, and in JSON everything else that cannot be printed beyond ASCII,
// such as U+009B, which begins an escape sequence as ESC [ does, and U+202E,
// which turns the text after it around. Both handlers write a record with one
// call and a newline at its end.
type escaper struct {
	w      io.Writer
	escape func(b []byte, r rune) []byte
	buf    []byte // kept for the next line; slog's lock guards it
}

// Write writes a line. It returns len(line) where the whole line was written,
// however long it became.
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

// harmful reports whether a line may hold something to escape: a quick look at
// what is all printable ASCII, as nearly every line is.
func harmful(line []byte) bool {
	for i, c := range line {
		if (c < ' ' || c >= 0x7F) && (c != '\n' || i != len(line)-1) {
			return true
		}
	}
	return false
}

// visible reports whether r may stand in a line: what Go calls printable, and
// valid UTF-8.
func visible(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

// appendGoEscape writes r as strconv.Quote does.
func appendGoEscape(b []byte, r rune) []byte {
	switch {
	case r < utf8.RuneSelf:
		return fmt.Appendf(b, `\x%02x`, r)
	case r < 0x10000:
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return fmt.Appendf(b, `\U%08x`, r)
}

// appendJSONEscape writes r as JSON does within a string (RFC 8259, section
// 7); outside of strings a line holds printable ASCII alone.
func appendJSONEscape(b []byte, r rune) []byte {
	if r < 0x10000 {
		return fmt.Appendf(b, `\u%04x`, r)
	}
	high, low := utf16.EncodeRune(r)
	return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
}
