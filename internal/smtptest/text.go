package smtptest

import (
	"strconv"
	"strings"
)

// Match reports whether text matches a pattern in which '*' stands for any text.
func Match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:last] {
		if ok {
			_, text, ok = strings.Cut(text, part)
		}
	}
	return ok && strings.HasSuffix(text, parts[last])
}

// Expand returns the bytes that s stands for. It replaces \r, \n, \0 and \xHH by
// the byte, and \(TEXT\)*N by N times the text. Any other backslash stands for
// itself.
func Expand(s string) string {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(s, `\`)
		b.WriteString(plain)
		if !found {
			return b.String()
		}
		s = rest
		switch {
		case rest == "":
			b.WriteByte('\\')
		case rest[0] == 'r':
			b.WriteByte('\r')
			s = rest[1:]
		case rest[0] == 'n':
			b.WriteByte('\n')
			s = rest[1:]
		case rest[0] == '0':
			b.WriteByte(0)
			s = rest[1:]
		case rest[0] == 'x' && len(rest) >= 3:
			v, _ := strconv.ParseUint(rest[1:3], 16, 8)
			b.WriteByte(byte(v))
			s = rest[3:]
		case rest[0] == '(':
			text, after, _ := strings.Cut(rest[1:], `\)*`)
			s = strings.TrimLeft(after, "0123456789")
			n, _ := strconv.Atoi(after[:len(after)-len(s)])
			b.WriteString(strings.Repeat(Expand(text), n))
		default:
			b.WriteByte('\\')
		}
	}
}
