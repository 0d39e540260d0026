package wire

import (
	"strconv"
	"strings"
)

// decodeXtext decodes xtext (RFC 3461, section 4): graphic ASCII, in which '+' and two
// upper-case hexadecimal digits stand for a byte.
func decodeXtext(s string) (string, bool) {
	if s == "" || !isGraphic(s) || strings.Contains(s, "=") {
		return "", false
	}
	if !strings.Contains(s, "+") {
		return s, true
	}
	plain, rest, more := strings.Cut(s, "+")
	b := append(make([]byte, 0, len(s)), plain...)
	for more {
		if len(rest) < 2 || rest[:2] != strings.ToUpper(rest[:2]) {
			return "", false
		}
		code, err := strconv.ParseUint(rest[:2], 16, 8)
		if err != nil {
			return "", false
		}
		plain, rest, more = strings.Cut(rest[2:], "+")
		b = append(append(b, byte(code)), plain...)
	}
	return string(b), true
}
