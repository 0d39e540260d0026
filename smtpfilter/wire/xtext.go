package wire

import "strings"

// decodeXtext decodes xtext (RFC 3461, section 4): graphic ASCII, in which '+' and two
// upper-case hexadecimal digits stand for a byte.
func decodeXtext(s string) (string, bool) {
	if !isGraphic(s) || strings.Contains(s, "=") {
		return "", false
	}
	if !strings.Contains(s, "+") {
		return s, s != ""
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '+' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		high, low := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b = append(b, byte(high<<4|low))
		i += 2
	}
	return string(b), true
}

const hexDigits = "0123456789ABCDEF"
