package wire_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"spamgate/smtpfilter/wire"
)

// waitLimit is how long a test waits for what must come.
const waitLimit = 20 * time.Second

// gate is go-smtp's server on a wire.Listener, with sessions that write down
// what they are asked to do.
type gate struct {
	addr string

	mu       sync.Mutex
	commands []string // MAIL, RCPT and DATA as sessions see them
	messages []string // that were read to their end
	ends     []error  // of the others
}

// newGate starts a gate that ends with the test.
func newGate(t testing.TB, cfg wire.Config) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: l.Addr().String()}
	cfg.Hostname = "gate.example"
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{g, c.Conn().(*wire.Conn), ""}, nil
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(wire.NewListener(l, cfg)) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return g
}

func (g *gate) record(list *[]string, what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*list = append(*list, what)
}

// forget drops what was written down.
func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commands, g.messages, g.ends = nil, nil, nil
}

// executed are the commands that sessions have seen, without those of the named
// addresses.
func (g *gate) executed(but ...string) (others []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, command := range g.commands {
		if !slices.ContainsFunc(but, func(s string) bool { return strings.Contains(command, s) }) {
			others = append(others, command)
		}
	}
	return others
}

// session does what the sender's local part says: "refused" is refused, "early"
// is without reading, "middle" in the middle of the message, "header" for its
// header section.
type session struct {
	g    *gate
	conn *wire.Conn
	from string
}

var errRefused = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.NoEnhancedCode, Message: "5.7.1 refused"}

func (s *session) take(verb string) error {
	path := s.conn.Command().Path
	s.g.record(&s.g.commands, verb+" "+path.String())
	if path.LocalPart() == "refused" {
		return errRefused
	}
	return nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	s.from = s.conn.Command().Path.LocalPart()
	return s.take("MAIL")
}
func (s *session) Rcpt(string, *smtp.RcptOptions) error { return s.take("RCPT") }
func (s *session) Reset()                               {}
func (s *session) Logout() error                        { return nil }

func (s *session) Data(io.Reader) error {
	body := s.conn.Body()
	err := s.read(body)
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if err == nil {
		return nil
	}
	s.g.ends = append(s.g.ends, err)
	body.Discard()
	switch {
	case wire.TimedOut(err):
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.NoEnhancedCode, Message: "4.4.2 too slow"}
	case errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrHeaderTooLarge):
		return &smtp.SMTPError{Code: 552, EnhancedCode: smtp.NoEnhancedCode, Message: "5.3.4 too large"}
	}
	return errRefused
}

func (s *session) read(body *wire.Body) error {
	var got []byte
	switch s.from {
	case "early":
		return errRefused
	case "header":
		section, err := body.Header(10)
		if err != nil {
			return err
		}
		got = append(got, section...)
	}
	for {
		piece, err := body.Next()
		if err == io.EOF {
			s.g.record(&s.g.messages, string(got))
			return nil
		}
		if err != nil {
			return err
		}
		if s.from == "middle" {
			return errRefused
		}
		got = append(got, piece...)
	}
}

// client is a client of a test, which can say anything.
type client struct {
	*net.TCPConn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(waitLimit))
	t.Cleanup(func() { c.Close() })
	return client{c.(*net.TCPConn), bufio.NewReader(c)}
}

// reply returns the code of the next reply, "" at the end of the connection.
func (c client) reply() string {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil || len(line) < 4 {
			return ""
		}
		if line[3] == ' ' {
			return line[:3]
		}
	}
}

// replies returns all codes up to the end of the connection. It fails if the gate does not
// close the connection.
func (c client) replies(t *testing.T) string {
	t.Helper()
	var codes []string
	for {
		code := c.reply()
		if code == "" {
			break
		}
		codes = append(codes, code)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || wire.TimedOut(err) {
		t.Errorf("behind %s: %v, want the end of the connection", strings.Join(codes, " "), err)
	}
	return strings.Join(codes, " ")
}
