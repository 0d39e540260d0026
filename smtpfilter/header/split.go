package header

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitter splits a header section into fields. It has no errors: a reader that stopped at
// a malformed line would miss every field after it.
//
//   - Every line with a colon starts a field, whatever is before the colon. White space
//     before the colon is dropped ("From : a@b.example"), even if it is folded, since
//     some mail servers unfold first.
//   - A line that starts with space or tab continues the field above it. If there is
//     none (the first line, or one after a malformed line), it is a line of its own.
//   - A malformed line, without a colon, is one more value of the field above it: some
//     readers take it for a continuation that lost its space. It is not part of that
//     field's own value, where it could turn an address into display text.
//   - An mbox separator ("From a@b.example Mon Jan …", also with ">" before it) is not a
//     From field: its name has spaces, or it has no colon and is skipped.
type splitter struct {
	rest  []byte
	name  []byte // of the present field
	value []byte // still folded
	lost  bool   // the value is a malformed line
	lines []byte // those of the name and the value, as written

	lastLine []byte // a malformed line that may be a name, if only white space follows it
	lastFrom []byte // the section from that line on
}

// trimName removes the white space that may come between a name and its colon: two characters
// by the grammar, all ASCII ones for C's isspace, and for JavaScript's trim also others, such as
// a no-break space in Latin-1 or UTF-8, on both sides.
func trimName(name []byte) []byte {
	isSpace := func(r rune, size int, b byte) bool {
		return unicode.IsSpace(r) || r == utf8.RuneError && size == 1 && b == 0xa0
	}
	for len(name) > 0 {
		r, size := utf8.DecodeLastRune(name)
		if !isSpace(r, size, name[len(name)-1]) {
			break
		}
		name = name[:len(name)-size]
	}
	for len(name) > 0 {
		r, size := utf8.DecodeRune(name)
		if !isSpace(r, size, name[0]) {
			break
		}
		name = name[size:]
	}
	return name
}

// next reads the next field. It reports false at the end.
func (s *splitter) next() bool {
	for len(s.rest) > 0 {
		from := s.rest
		line := s.cutLine()
		content := bytes.TrimLeft(bytes.TrimRight(line, "\r\n"), " \t")
		colon := bytes.IndexByte(content, ':')
		switch {
		case len(content) == 0:
			s.name = nil
		case colon >= 0:
			begin := from
			s.name = trimName(content[:colon])
			if len(s.name) == 0 && isSpace(line[0]) && s.lastLine != nil {
				s.name, begin = s.lastLine, s.lastFrom
			}
			s.lastLine = nil
			start := bytes.IndexByte(line, ':') + 1
			for len(s.rest) > 0 && isSpace(s.rest[0]) {
				s.cutLine()
			}
			s.value, s.lost = from[start:len(from)-len(s.rest)], false
			s.lines = begin[:len(begin)-len(s.rest)]
			return true
		default:
			s.lastLine, s.lastFrom = trimName(content), from
			if len(s.name) > 0 && !isSeparator(content) {
				s.value, s.lost, s.lines = content, true, line
				return true
			}
		}
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// cutLine returns the next line with its line end.
func (s *splitter) cutLine() []byte {
	end := bytes.IndexByte(s.rest, '\n') + 1
	if end == 0 {
		end = len(s.rest)
	}
	line := s.rest[:end]
	s.rest = s.rest[end:]
	return line
}

// isSeparator reports whether a line is an mbox "From " line.
func isSeparator(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(line, []byte{'>'}), []byte("From "))
}

// isName reports whether a field's name as written is name, without regard to case.
func isName(written []byte, name string) bool {
	return len(written) == len(name) && strings.EqualFold(string(written), name)
}

// unfold removes the line breaks of a folded value and keeps the space after them (RFC
// 5322, section 2.2.3).
func unfold(value []byte) string {
	value = bytes.TrimRight(value, "\r\n")
	if !bytes.ContainsAny(value, "\r\n") {
		return string(value)
	}
	var b strings.Builder
	b.Grow(len(value))
	for _, c := range value {
		if c != '\r' && c != '\n' {
			b.WriteByte(c)
		}
	}
	return b.String()
}
