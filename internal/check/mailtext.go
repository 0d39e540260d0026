package check

import (
	"bufio"
	"bytes"
	"io"
	"math"

	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/smtpfilter/wire"
)

// bytesRules say which messages a listener refuses for their bytes. A door refuses none.
type bytesRules struct {
	most      int64 // bytes of a message
	normalize bool  // bare CRs become spaces, see bare_newline
}

func bytesRulesOf(c *config.Config, as setup.Judged, q Question) bytesRules {
	if as.Listener == nil {
		return bytesRules{most: math.MaxInt64}
	}
	s := setup.Settings(c, *as.Listener)
	return bytesRules{s.MaxMessageBytes, s.Normalize != nil && s.Normalize(q.Client)}
}

// mailText reads a message as a client sends it: with CRLF at the end of each line, whatever the
// file has. It notes for which bytes a listener would refuse the message.
type mailText struct {
	in    *bufio.Reader
	rules bytesRules // most becomes what may follow
	rest  []byte     // read, and not yet returned
	fault error      // the first

	inLine bool // the last byte did not end a line
	cr     bool // it was a CR
}

// Read implements io.Reader. The text ends where it becomes too large.
func (m *mailText) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.rules.most < 0 {
			return 0, io.EOF
		}
		piece, err := m.in.ReadSlice('\n')
		if len(piece) == 0 && err != nil {
			if err != io.EOF || !m.inLine {
				return 0, err
			}
			piece = []byte("\r\n") // as a client ends the last line
		}
		m.rest = m.convert(piece)
		m.rules.most -= int64(len(m.rest))
		m.note(m.rules.most < 0, wire.ErrTooLarge)
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// convert returns a line or a part of one with the line end that mail has. A CR at the end is held
// back, since it may be a part of that.
func (m *mailText) convert(piece []byte) []byte {
	m.note(bytes.IndexByte(piece, 0) >= 0, wire.ErrNUL)
	line, ends := bytes.CutSuffix(piece, []byte("\n"))
	m.inLine = !ends
	if m.cr {
		line = append([]byte("\r"), line...)
	}
	if line, m.cr = bytes.CutSuffix(line, []byte("\r")); ends {
		m.cr = false
	}
	if bytes.IndexByte(line, '\r') >= 0 {
		m.note(!m.rules.normalize, wire.ErrBareNewline)
		if m.rules.normalize {
			line = bytes.ReplaceAll(line, []byte("\r"), []byte(" "))
		}
	}
	if !ends {
		return line
	}
	return append(bytes.Clone(line), "\r\n"...)
}

func (m *mailText) note(is bool, fault error) {
	if is && m.fault == nil {
		m.fault = fault
	}
}
