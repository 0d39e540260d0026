package header

import (
	"bytes"
	"strings"
)

// splitter cuts a header section into fields. It has no notion of an error,
// for a reader that stops at a malformed line hides every field behind it:
//
//   - Every line with a colon starts a field, whatever is in front of the
//     colon; white space before it is dropped ("From : a@b.example"), and where
//     there is a fold in that, it is a field of this name too: some mail servers
//     unfold first.
//   - A line that starts with space or tab continues the field above it. Where
//     there is none (the first line, or one behind a malformed line) it is read
//     as a line of its own.
//   - A malformed line, one without a colon, comes out as one more value of the
//     field above it: some readers take it for a continuation that lost its
//     space. It does not become part of that field's own value, where it could
//     turn an address into display text.
//   - An mbox separator ("From a@b.example Mon Jan …", also with ">" in front)
//     is no From field: its name has spaces inside, or it has no colon and is
//     skipped.
type splitter struct {
	rest  []byte
	name  []byte // of the present field
	value []byte // still folded
	lost  bool   // the value is a malformed line

	dangling []byte // a malformed line that may be a name: white space alone has followed
}

// nameSpace is what may stand between a name and its colon: to the grammar the
// first two, to C's isspace all of them.
const nameSpace = " \t\v\f"

// next moves to the next field; it reports false at the end.
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
			s.name = bytes.TrimRight(content[:colon], nameSpace)
			if len(s.name) == 0 && isSpace(line[0]) {
				s.name = s.dangling
			}
			s.dangling = nil
			start := bytes.IndexByte(line, ':') + 1
			for len(s.rest) > 0 && isSpace(s.rest[0]) {
				s.cutLine()
			}
			s.value, s.lost = from[start:len(from)-len(s.rest)], false
			return true
		default:
			s.dangling = bytes.TrimRight(content, nameSpace)
			if len(s.name) > 0 && !isSeparator(content) {
				s.value, s.lost = content, true
				return true
			}
		}
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// cutLine takes a line and its ending off the rest.
func (s *splitter) cutLine() []byte {
	end := bytes.IndexByte(s.rest, '\n') + 1
	if end == 0 {
		end = len(s.rest)
	}
	line := s.rest[:end]
	s.rest = s.rest[end:]
	return line
}

// isSeparator reports an mbox "From " line.
func isSeparator(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(line, []byte{'>'}), []byte("From "))
}

// isName compares a field's name as written with one asked for.
func isName(written []byte, asked string) bool {
	return len(written) == len(asked) && strings.EqualFold(string(written), asked)
}

// unfold drops the line breaks of a folded value; the space behind them stays
// (RFC 5322, section 2.2.3).
func unfold(value []byte) string {
	value = bytes.TrimRight(value, "\r\n")
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
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
