package smtptest

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// errEnded reports that QUIT or a directive ended the connection.
var errEnded = errors.New("connection ended")

// session is one connection of a Sink.
type session struct {
	sink *Sink
	n    int // number of the connection
	conn net.Conn
	in   *bufio.Reader

	reads int // network reads so far

	hello    string
	xclient  string // the last one accepted, or ""
	mail     string
	rcpts    []string
	commands []string
	chunks   *receiver // of a message in chunks that is not complete
}

func newSession(sink *Sink, n int, conn net.Conn) *session {
	s := &session{sink: sink, n: n, conn: conn}
	s.in = bufio.NewReaderSize(countingReader{s}, 64<<10)
	return s
}

// countingReader counts the network reads of its session.
type countingReader struct{ s *session }

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.s.conn.Read(p)
	r.s.reads++
	return n, err
}

// run serves the client until it quits or one side closes the connection.
func (s *session) run() {
	defer s.reset()
	greeting := "220 sink.example ESMTP"
	if s.sink.config.LMTP {
		greeting = "220 sink.example LMTP"
	}
	if s.answer("GREETING", greeting) != nil {
		return
	}
	for {
		line, err := s.readCommand()
		if err != nil {
			return
		}
		if err := s.execute(line); err != nil {
			return
		}
	}
}

// readCommand reads one command line and records it.
func (s *session) readCommand() (string, error) {
	raw, err := s.in.ReadString('\n')
	if err != nil {
		if raw != "" {
			s.violation("connection ended inside the command %q", raw)
		}
		return "", err
	}
	line, crlf := strings.CutSuffix(raw, "\r\n")
	if !crlf || strings.ContainsAny(line, "\r\x00") {
		s.violation("command %q", raw)
	}
	s.sink.mu.Lock()
	s.sink.commands = append(s.sink.commands, Command{Conn: s.n, Flight: s.reads, Line: line})
	s.sink.changed.Broadcast()
	s.sink.mu.Unlock()
	return line, nil
}

func (s *session) violation(format string, args ...any) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.violations = append(s.sink.violations, fmt.Sprintf("connection %d: ", s.n)+fmt.Sprintf(format, args...))
}

func verb(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return strings.ToUpper(word)
}

// execute answers one command. What the command changes depends on the reply
// that is sent, be it canned or not.
func (s *session) execute(line string) error {
	switch v := verb(line); v {
	case "EHLO", "HELO", "LHLO":
		if (v == "LHLO") != s.sink.config.LMTP {
			break
		}
		s.reset()
		s.hello = line
		if v == "HELO" {
			return s.answer(line, "250 sink.example")
		}
		return s.answer(line, ehloReply("sink.example", s.offers()))
	case "XFORWARD":
		s.commands = append(s.commands, line)
		return s.answer(line, "250 2.0.0 Ok")
	case "XCLIENT":
		return s.executeXCLIENT(line)
	case "STARTTLS":
		return s.executeStartTLS(line)
	case "AUTH":
		return s.executeAuth(line)
	case "MAIL":
		if s.mail != "" {
			return s.answer(line, "503 5.5.1 Error: nested MAIL command")
		}
		return s.envelope(line, "250 2.1.0 Ok", func() { s.mail = line })
	case "RCPT":
		if s.mail == "" {
			return s.answer(line, "503 5.5.1 Error: need MAIL command")
		}
		return s.envelope(line, "250 2.1.5 Ok", func() { s.rcpts = append(s.rcpts, line) })
	case "DATA":
		return s.executeData(line)
	case "BDAT":
		return s.executeBDAT(line)
	case "RSET":
		s.reset()
		return s.answer(line, "250 2.0.0 Ok")
	case "NOOP":
		return s.answer(line, "250 2.0.0 Ok")
	case "QUIT":
		if err := s.answer(line, "221 2.0.0 Bye"); err != nil {
			return err
		}
		return errEnded
	}
	s.violation("unknown command %q", line)
	return s.answer(line, "500 5.5.2 Error: command not recognized")
}

// offers returns the EHLO lines that the server offers now.
func (s *session) offers() []string {
	_, secure := s.conn.(*tls.Conn)
	return slices.DeleteFunc(slices.Clone(s.sink.config.Extensions), func(line string) bool {
		return secure && verb(line) == "STARTTLS" || s.xclientUsed() && verb(line) == "XCLIENT"
	})
}

// xclientUsed reports whether the client can no longer use XCLIENT.
func (s *session) xclientUsed() bool { return s.xclient != "" && s.sink.config.OneXCLIENT }

// executeXCLIENT begins the session anew, as in Postfix's XCLIENT_README.
func (s *session) executeXCLIENT(line string) error {
	if s.mail != "" {
		return s.answer(line, "503 5.5.1 Error: MAIL transaction in progress")
	}
	if s.xclientUsed() {
		return s.answer(line, "550 5.7.0 Error: insufficient authorization")
	}
	reply, err := s.reply(line, "220 sink.example ESMTP")
	if positive(reply) {
		s.xclient, s.hello = line, ""
	}
	return err
}

func (s *session) executeStartTLS(line string) error {
	reply, err := s.reply(line, "220 2.0.0 Ready to start TLS")
	if err != nil || !positive(reply) {
		return err
	}
	if s.in.Buffered() > 0 {
		s.violation("plain text after STARTTLS")
	}
	c := tls.Server(s.conn, ServerTLS())
	s.conn = c
	s.hello, s.xclient = "", ""
	return c.Handshake()
}

// executeAuth reads a line after each challenge (RFC 4954, section 4), and
// records and answers it like a command.
func (s *session) executeAuth(line string) error {
	for {
		reply, err := s.reply(line, "235 2.7.0 Ok")
		if err != nil || !strings.HasPrefix(reply, "334") {
			return err
		}
		if line, err = s.readCommand(); err != nil {
			return err
		}
	}
}

// envelope answers a command of the envelope, and calls accepted after a positive
// reply.
func (s *session) envelope(line, usual string, accepted func()) error {
	s.commands = append(s.commands, line)
	reply, err := s.reply(line, usual)
	if positive(reply) {
		accepted()
	}
	return err
}

func (s *session) executeData(line string) error {
	if s.chunks != nil {
		s.violation("DATA after BDAT")
		return s.answer(line, "503 5.5.1 Error: DATA after BDAT")
	}
	if len(s.rcpts) == 0 {
		return s.answer(line, "503 5.5.1 Error: need RCPT command")
	}
	s.commands = append(s.commands, line)
	reply, err := s.reply(line, "354 End data with <CR><LF>.<CR><LF>")
	if err != nil || !strings.HasPrefix(reply, "354") {
		return err
	}
	r := s.newReceiver()
	s.reset()
	if err := r.readBody(); err != nil {
		r.record()
		return err
	}
	return r.conclude()
}

// reset ends the transaction, and records an incomplete message in chunks.
func (s *session) reset() {
	s.mail, s.rcpts, s.commands = "", nil, nil
	if s.chunks != nil {
		s.chunks.record()
		s.chunks = nil
	}
}

func positive(reply string) bool { return strings.HasPrefix(reply, "2") }

// answer sends the canned reply to a command, or the usual one.
func (s *session) answer(line, usual string) error {
	_, err := s.reply(line, usual)
	return err
}

// reply does the same, and returns the reply.
func (s *session) reply(line, usual string) (string, error) {
	reply := s.choose(line, usual)
	return reply, s.send(reply)
}

// choose returns the reply to a command.
func (s *session) choose(line, usual string) string {
	if answer := s.sink.config.Answer; answer != nil {
		if reply := answer(Command{Conn: s.n, Flight: s.reads, Line: line}); reply != "" {
			return reply
		}
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return cmp.Or(s.sink.replies[line], s.sink.replies[verb(line)], usual)
}

// send writes a reply and obeys the directive at its end. It returns an error
// if the connection is to be closed.
func (s *session) send(reply string) error {
	var out []byte
	directive := ""
	for line := range strings.SplitSeq(reply, "\n") {
		switch line {
		case Close, Reset, Silence:
			directive = line
		default:
			out = append(append(out, line...), '\r', '\n')
		}
	}
	if _, err := s.conn.Write(out); err != nil {
		return err
	}
	if directive != "" {
		obey(directive, s.conn, s.in)
		return errEnded
	}
	if strings.HasPrefix(reply, "421") {
		return errors.New("421 was sent")
	}
	return nil
}
