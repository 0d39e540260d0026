package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
