package wire_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// testGate is a wire.Listener with go-smtp's server.
type testGate struct {
	cfg      wire.Config
	erredAt  int
	erred    wire.Reply
	refused  map[string]wire.Reply
	listener *wire.Listener
	addr     string
	served   chan error

	mu     sync.Mutex
	events []string
	errors int
}

func newTestGate(t testing.TB) *testGate {
	g := &testGate{refused: map[string]wire.Reply{}}
	g.cfg = wire.Config{
		Hostname:  "gate.example",
		Noticed:   func(_ *wire.Conn, what string) { g.record("noticed " + what) },
		Refused:   func(_ *wire.Conn, line string, r wire.Reply) { g.record("refused " + line) },
		Connected: g.connected,
		Erred: func(*wire.Conn) wire.Reply {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.errors++; g.errors == g.erredAt {
				return g.erred
			}
			return wire.Reply{}
		},
	}
	return g
}

func (g *testGate) connected(c *wire.Conn) wire.Reply {
	client := c.Client()
	if r, ok := g.refused[client.Addr.Addr().String()]; ok {
		return r
	}
	if g.cfg.ProxySources != nil || g.cfg.TrustedProxies != nil {
		g.record("connected " + describe(client))
	}
	return wire.Reply{}
}

// setUp carries out a line of the set-up.
func (g *testGate) setUp(l smtptest.Line) (err error) {
	arg := l.Text
	switch l.Verb {
	case "next":
		e := wire.Extensions{}
		for _, keyword := range strings.Fields(strings.TrimPrefix(arg, "-")) {
			name, parameters, ok := strings.Cut(keyword, "=")
			e[name] = nil
			if ok {
				e[name] = strings.Split(parameters, ",")
			}
		}
		g.cfg.Extensions = func(*wire.Conn) wire.Extensions { return e }
	case "limit":
		g.cfg.MaxMessageBytes, err = strconv.ParseInt(arg, 10, 64)
	case "recipients":
		g.cfg.MaxRecipients, err = strconv.Atoi(arg)
	case "errors":
		g.cfg.MaxErrors, err = strconv.Atoi(arg)
	case "tls":
		g.cfg.TLS = smtptest.ServerTLS()
		g.cfg.TLSMode = map[string]wire.TLSMode{"offered": wire.TLSOffered, "required": wire.TLSRequired, "implicit": wire.TLSImplicit}[arg]
	case "auth":
		g.cfg.Auth, g.cfg.AuthRequired = g.authenticate, arg == "required"
	case "trusted":
		g.cfg.TrustedProxies = append(g.cfg.TrustedProxies, netip.MustParsePrefix(arg))
	case "proxy":
		g.cfg.ProxySources = append(g.cfg.ProxySources, netip.MustParsePrefix(arg))
	case "delay":
		g.cfg.GreetingDelay, err = time.ParseDuration(arg)
	case "reject":
		g.cfg.RejectPregreet = true
	case "refuse":
		addr, reply, _ := strings.Cut(arg, " ")
		g.refused[addr], err = parseReply(reply)
	case "erred":
		n, reply, _ := strings.Cut(arg, " ")
		g.erredAt, _ = strconv.Atoi(n)
		g.erred, err = parseReply(reply)
	default:
		err = errors.New("unknown set-up")
	}
	return err
}

func parseReply(s string) (r wire.Reply, err error) {
	_, err = r.AppendLine([]byte(s + "\r\n"))
	return r, err
}

// authenticate takes the user "user" with the password "secret": PLAIN with or
// without an initial response, LOGIN; BROKEN gives back no proper reply.
func (g *testGate) authenticate(c *wire.Conn, args string, ask func(wire.Reply) (string, error)) wire.Reply {
	mechanism, answer, _ := strings.Cut(args, " ")
	g.record("auth " + args)
	challenges := []string{""}
	switch mechanism {
	case "LOGIN":
		challenges = []string{"VXNlcm5hbWU6", "UGFzc3dvcmQ6"}
	case "BROKEN":
		return wire.NewReply(250, "2.0.0 Ok")
	}
	if answer != "" {
		challenges = challenges[1:]
	}
	for _, challenge := range challenges {
		var err error
		if answer, err = ask(wire.NewReply(334, challenge)); err != nil {
			g.record("ask: " + err.Error())
			return wire.NewReply(250, "2.0.0 not sent")
		}
		if answer == "*" {
			return wire.NewReply(501, "5.7.0 Authentication cancelled")
		}
	}
	secret, _ := base64.StdEncoding.DecodeString(answer)
	if string(secret) != "secret" && string(secret) != "\x00user\x00secret" {
		return wire.NewReply(535, "5.7.8 Authentication credentials invalid")
	}
	return wire.NewReply(235, "2.7.0 Authentication successful")
}

func (g *testGate) record(event string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, event)
}

func (g *testGate) recorded() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.events)
}

func (g *testGate) start(t testing.TB) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.serve(t, tcp)
}

func (g *testGate) serve(t testing.TB, tcp net.Listener) {
	g.addr = tcp.Addr().String()
	g.listener = wire.NewListener(tcp, g.cfg)
	g.served = make(chan error, 1)
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &recorder{g: g, conn: c.Conn().(*wire.Conn)}, nil
	}))
	server.Domain = "gate.example"
	go func() { g.served <- server.Serve(g.listener) }()
	t.Cleanup(func() { g.stop(t) })
}

// stop ends the gate and waits for its connections.
func (g *testGate) stop(t testing.TB) {
	if g.served == nil {
		return
	}
	g.listener.Close()
	if err := <-g.served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	g.served = nil
	g.listener.Drain(t.Context())
}

// dial connects a client.
func (g *testGate) dial(t testing.TB) *smtptest.Peer {
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return smtptest.NewClient(conn)
}

// mustSetUp carries out lines of a set-up.
func (g *testGate) mustSetUp(t testing.TB, lines ...string) {
	t.Helper()
	set := smtptest.Parse("", strings.Join(lines, "\n"))
	set.Each(t, set.Steps, g.setUp)
}

// play plays steps, and fails the test at the first error.
func play(t testing.TB, client *smtptest.Peer, steps ...string) {
	t.Helper()
	if err := client.PlayAll(steps...); err != nil {
		t.Error(err)
	}
}

// recorder is a go-smtp session that takes all mail and tells of it.
type recorder struct {
	g    *testGate
	conn *wire.Conn
}

func (s *recorder) Mail(string, *smtp.MailOptions) error {
	s.recordCommand()
	if s.g.cfg.TrustedProxies != nil || s.g.cfg.ProxySources != nil {
		s.g.record("client " + describe(s.conn.Client()))
		s.g.record("forwarded " + describe(s.conn.Forwarded()))
	}
	return nil
}

func (s *recorder) Rcpt(string, *smtp.RcptOptions) error {
	s.recordCommand()
	return nil
}

func (s *recorder) recordCommand() {
	cmd := s.conn.Command()
	s.g.record(strings.Join(append([]string{cmd.Verb, "<" + cmd.Path.String() + ">"}, cmd.Params...), " "))
}

func (s *recorder) Data(io.Reader) error {
	var message []byte
	for {
		piece, err := s.conn.Body().Next()
		if err != nil {
			s.g.record(fmt.Sprintf("message %q", message))
			return nil
		}
		message = append(message, piece...)
	}
}

func (s *recorder) Reset()        {}
func (s *recorder) Logout() error { return nil }

// describe writes a client's fields on one line, "-" for what is unknown.
func describe(c wire.Client) string {
	addr, local := "-", "-"
	if c.Addr.Addr().IsValid() {
		addr = c.Addr.String()
	}
	if c.Local.Addr().IsValid() {
		local = c.Local.String()
	}
	words := []string{addr, local, c.Name, c.Helo, c.Proto, c.Login, c.ID}
	for i := range words {
		if words[i] == "" {
			words[i] = "-"
		}
	}
	return strings.Join(words, " ")
}
