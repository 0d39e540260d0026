package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReplyLine is the longest reply line that the gate sends, in bytes, CRLF included
// (RFC 5321, section 4.5.3.1.5).
const MaxReplyLine = 512

// Reply is an SMTP reply: a three-digit code and the text of each line, which may
// begin with an enhanced status code. Append writes the bytes that AppendLine read.
type Reply struct {
	Code  int      // 200 to 599
	Lines []string // the text after the code and '-' or ' ', without CRLF; at least one line, which may be empty
}

// NewReply returns a reply of one or more lines, which must be printable and short
// enough (see MaxReplyLine).
func NewReply(code int, lines ...string) Reply {
	if len(lines) == 0 {
		lines = []string{""}
	}
	return Reply{Code: code, Lines: lines}
}

// IsZero reports whether r is the zero Reply: none.
func (r Reply) IsZero() bool { return r.Code == 0 }

// Positive reports whether the code is 2xx.
func (r Reply) Positive() bool { return r.Code/100 == 2 }

// Temporary reports whether the code is 4xx: the client may try again.
func (r Reply) Temporary() bool { return r.Code/100 == 4 }

// Permanent reports whether the code is 5xx.
func (r Reply) Permanent() bool { return r.Code/100 == 5 }

// maxReplyString limits Reply.String, in bytes.
const maxReplyString = 1024

// String returns the reply on one line, for logs: the code, then the lines joined by
// " / ". It cuts a reply of more than 1 KiB after a word, so that no part of an address
// is left, and adds " [...]".
func (r Reply) String() string {
	if r.IsZero() {
		return ""
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(r.Code))
	separator := " "
	for _, line := range r.Lines {
		b.WriteString(separator)
		b.WriteString(line)
		if separator = " / "; b.Len() > maxReplyString {
			text := cut(b.String(), maxReplyString-len(omitted))
			return strings.TrimRight(text[:strings.LastIndexByte(text, ' ')+1], " /") + omitted
		}
	}
	return b.String()
}

// Append appends the reply in wire format.
func (r Reply) Append(b []byte) []byte {
	for i, line := range r.Lines {
		b = strconv.AppendInt(b, int64(r.Code), 10)
		if i == len(r.Lines)-1 {
			b = append(b, ' ')
		} else {
			b = append(b, '-')
		}
		b = append(b, line...)
		b = append(b, '\r', '\n')
	}
	return b
}

// ErrBadReply is wrapped by the errors for an invalid line of a server's reply.
var ErrBadReply = errors.New("malformed SMTP reply")

// Limits of a server's reply. Servers exceed the 512 bytes a line of the RFC.
const (
	maxReadReplyLine  = 4096
	maxReadReplyLines = 256
)

// AppendLine adds a line of a server's reply, with its line ending, and reports whether
// it was the last. A line has three digits (200 … 599), then '-', ' ' or nothing, then
// text without CR, LF and NUL. It may have 4096 bytes, and a challenge of AUTH (334)
// MaxAuthLine. A bare LF ends a line, too.
func (r *Reply) AppendLine(line []byte) (last bool, err error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	limit := maxReadReplyLine
	if bytes.HasPrefix(line, []byte("334")) { // a challenge of AUTH
		limit = MaxAuthLine - len("\r\n")
	}
	if len(line) > limit {
		return false, fmt.Errorf("%w: a line of %d bytes", ErrBadReply, len(line))
	}
	if len(r.Lines) == maxReadReplyLines {
		return false, fmt.Errorf("%w: more than %d lines", ErrBadReply, maxReadReplyLines)
	}
	if len(line) < 3 || bytes.ContainsAny(line, "\r\n\x00") {
		return false, badReplyLine(line)
	}
	code := 0
	for _, c := range line[:3] {
		if c < '0' || c > '9' {
			return false, badReplyLine(line)
		}
		code = code*10 + int(c-'0')
	}
	if code < 200 || code > 599 {
		return false, fmt.Errorf("%w: code %d", ErrBadReply, code)
	}
	if r.Code != 0 && r.Code != code {
		return false, fmt.Errorf("%w: code %d in a reply that began with %d", ErrBadReply, code, r.Code)
	}
	last = len(line) == 3 || line[3] == ' '
	if !last && line[3] != '-' {
		return false, badReplyLine(line)
	}
	text := ""
	if len(line) > 4 {
		text = string(line[4:])
	}
	r.Code = code
	r.Lines = append(r.Lines, text)
	return last, nil
}

// badReplyLine returns the error for an invalid reply line, with its beginning.
func badReplyLine(line []byte) error {
	const most = 200
	if len(line) > most {
		return fmt.Errorf("%w: %q and %d bytes more", ErrBadReply, line[:most], len(line)-most)
	}
	return fmt.Errorf("%w: %q", ErrBadReply, line)
}

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
func (c *dialogue) forClient(r Reply) Reply {
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
