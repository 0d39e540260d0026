package smtpfilter_test

import (
	"strconv"
	"strings"
)

// like compares text with a pattern in which '*' stands for any text.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) || len(text) < len(parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// expand decodes \r, \n, \0 and \xHH, and repeats (text)*N.
func expand(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, `\r`):
			b.WriteByte('\r')
			i += 2
		case strings.HasPrefix(rest, `\n`):
			b.WriteByte('\n')
			i += 2
		case strings.HasPrefix(rest, `\0`):
			b.WriteByte(0)
			i += 2
		case strings.HasPrefix(rest, `\x`) && len(rest) >= 4:
			v, _ := strconv.ParseUint(rest[2:4], 16, 8)
			b.WriteByte(byte(v))
			i += 4
		case strings.HasPrefix(rest, `\(`):
			text, after, _ := strings.Cut(rest[2:], `\)*`)
			digits := 0
			for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
				digits++
			}
			n, _ := strconv.Atoi(after[:digits])
			b.WriteString(strings.Repeat(expand(text), n))
			i = len(s) - len(after) + digits
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}
