package nexthop

import (
	"bufio"
	"bytes"
)

// stuffer converts the lines of BDAT to those of DATA: it doubles each dot that begins
// a line (RFC 5321, section 4.5.2) and completes the last line. A line begins after
// CRLF, wherever the pieces are cut. The zero stuffer is at the beginning of a
// message.
type stuffer struct {
	midLine bool // the next byte does not begin a line
	lastCR  bool // the last byte was a CR
}

var lineWithDot = []byte("\r\n.")

// write writes a piece with its dots doubled.
func (s *stuffer) write(w *bufio.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if s.lastCR && p[0] == '\n' {
		w.WriteByte('\n') // an error repeats at the next write
		s.midLine, s.lastCR = false, false
		p = p[1:]
	}
	for len(p) > 0 {
		if !s.midLine && p[0] == '.' {
			w.WriteByte('.')
		}
		end := len(p)
		if i := bytes.Index(p, lineWithDot); i >= 0 {
			end = i + len("\r\n")
		}
		if _, err := w.Write(p[:end]); err != nil {
			return err
		}
		s.midLine = !bytes.HasSuffix(p[:end], []byte("\r\n"))
		s.lastCR = p[end-1] == '\r'
		p = p[end:]
	}
	return nil
}

// close completes the last line.
func (s *stuffer) close(w *bufio.Writer) error {
	if !s.midLine {
		return nil
	}
	s.midLine, s.lastCR = false, false
	_, err := w.WriteString("\r\n")
	return err
}
