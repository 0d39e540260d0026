package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file limits the replies for clients and logs. Many come from the next hop, which
// may be broken or hostile.

// Limits of a reply to a client. The longest reply of a large mail service has some 6
// lines and 600 bytes.
const (
	MaxReplyLines = 32
	MaxReplyBytes = 4096 // codes and CRLFs included
)

// maxReplyText is the longest text of a line that fits in MaxReplyLine.
const maxReplyText = MaxReplyLine - len("250 ") - len("\r\n")

// omitted is added to a text that was cut.
const omitted = " [...]"

// forClient returns the reply as a client may receive it: at most MaxReplyLines lines of
// at most MaxReplyLine bytes, MaxReplyBytes in all, and printable: ASCII with tabs (RFC
// 5321, section 4.2: textstring), or UTF-8 if withUTF8 is set (RFC 6531, section 3.7.4).
// Other bytes become '?'. " [...]" marks what was cut.
func (r Reply) forClient(withUTF8 bool) Reply {
	if r.fits() {
		return r
	}
	bounded := Reply{Code: r.Code}
	room := MaxReplyBytes - len(omitted)
	for i, line := range r.Lines {
		text := printableText(line, maxReplyText, withUTF8)
		size := len(text) + MaxReplyLine - maxReplyText
		if i == MaxReplyLines || size > room {
			last := &bounded.Lines[i-1]
			*last = cut(*last, maxReplyText-len(omitted)) + omitted
			break
		}
		room -= size
		bounded.Lines = append(bounded.Lines, text)
	}
	return bounded
}

// fits reports whether a reply may be sent as it is.
func (r Reply) fits() bool {
	size := 0
	for _, line := range r.Lines {
		if len(line) > maxReplyText || !isPlain(line) {
			return false
		}
		size += len(line) + MaxReplyLine - maxReplyText
	}
	return size <= MaxReplyBytes && len(r.Lines) <= MaxReplyLines
}

// isPlain reports whether a text is printable ASCII and tabs.
func isPlain(s string) bool {
	return all(s, func(c byte) bool { return c >= ' ' && c <= '~' || c == '\t' })
}

// printableText replaces invalid characters by '?', and cuts the text to at most most
// bytes.
func printableText(s string, most int, withUTF8 bool) string {
	long := len(s) > most
	if long {
		s = s[:most]
	}
	if !isPlain(s) {
		s = strings.Map(func(r rune) rune {
			switch {
			case r >= ' ' && r <= '~', r == '\t':
				return r
			case withUTF8 && r != utf8.RuneError && unicode.IsPrint(r):
				return r
			}
			return '?'
		}, s)
	}
	if long {
		s = cut(s, most-len(omitted)) + omitted
	}
	return s
}

// cut returns at most most bytes of a text, in whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// forClient returns a reply as the client may receive it now.
func (c *Conn) forClient(r Reply) Reply {
	return r.forClient(c.utf8 && c.inMail || c.cmd.UTF8)
}

// CodesOnly returns the reply with its code and its enhanced status code (RFC 3463), if
// any, without other text. Logs show replies to AUTH so, since a next hop may repeat
// there what the client sent.
func (r Reply) CodesOnly() Reply {
	if len(r.Lines) == 0 {
		return r
	}
	enhanced, _, _ := strings.Cut(r.Lines[0], " ")
	if !isEnhancedCode(enhanced, r.Code/100) {
		enhanced = ""
	}
	return NewReply(r.Code, enhanced)
}

// isEnhancedCode reports whether s is an enhanced status code of a class.
func isEnhancedCode(s string, class int) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || parts[0] != string(rune('0'+class)) {
		return false
	}
	for _, p := range parts[1:] {
		if len(p) == 0 || len(p) > 3 || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	return true
}
