package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxReplyLine is the longest reply line that is sent, in bytes, CRLF
// included (RFC 5321, section 4.5.3.1.5).
const MaxReplyLine = 512

// Reply is an SMTP reply as it stood on the wire: a three-digit code and the
// text of each line, an enhanced status code included where there is one. A
// Reply that was read and is written again is the same bytes.
type Reply struct {
	// Code is between 200 and 599.
	Code int

	// Lines holds what follows the code and its '-' or ' ' on each line,
	// without the CRLF. There is at least one line; it may be empty.
	Lines []string
}

// NewReply makes a reply of one or more lines. The text is the caller's
// promise: printable and short enough (see MaxReplyLine).
func NewReply(code int, lines ...string) Reply {
	if len(lines) == 0 {
		lines = []string{""}
	}
	return Reply{Code: code, Lines: lines}
}

// IsZero reports whether r is the zero Reply, which is no reply at all.
func (r Reply) IsZero() bool { return r.Code == 0 }

// Positive reports a 2xx code.
func (r Reply) Positive() bool { return r.Code/100 == 2 }

// Temporary reports a 4xx code: the client may try again.
func (r Reply) Temporary() bool { return r.Code/100 == 4 }

// Permanent reports a 5xx code.
func (r Reply) Permanent() bool { return r.Code/100 == 5 }

// maxReplyString bounds Reply.String, in bytes.
const maxReplyString = 1024

// String returns the reply on one line, for logs: the code, then the lines joined
// by " / ". A reply that is longer than 1 KiB is cut after a word, so that no part
// of an address is left, and " [...]" is added.
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

// ErrBadReply is wrapped by the errors about a server's line that is no SMTP
// reply line.
var ErrBadReply = errors.New("malformed SMTP reply")

// Bounds on a reply that is read. The RFC allows 512 bytes a line; servers
// exceed it, so more is read, but not without end.
const (
	maxReadReplyLine  = 4096
	maxReadReplyLines = 256
)

// AppendLine adds one line as it came from the wire, with its line ending, and
// reports whether it was the reply's last. A reply line is three digits
// (200 … 599), then '-', ' ' or nothing, then text free of CR, LF and NUL. It may have
// 4096 bytes, a challenge of AUTH (334) as many as MaxAuthLine has room for.
// A lone LF ends a line too, as servers' scripts send it.
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

// badReplyLine returns the error about a line that is not a reply line. It shows
// the beginning of the line.
func badReplyLine(line []byte) error {
	const most = 200
	if len(line) > most {
		return fmt.Errorf("%w: %q and %d bytes more", ErrBadReply, line[:most], len(line)-most)
	}
	return fmt.Errorf("%w: %q", ErrBadReply, line)
}
