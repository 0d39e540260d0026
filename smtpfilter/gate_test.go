package smtpfilter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
)

// waitLimit is how long a test waits for something that must come. It is only
// reached when something hangs.
const waitLimit = 20 * time.Second

// tableJudge is a Checker whose lists are a table of "stage address", the
// addresses in normal form. "@domain" stands for all at that domain.
type tableJudge map[string]verdict.Verdict

func (j tableJudge) Judge() verdict.Judge { return judge{j} }

type judge struct{ tableJudge }

func (j judge) Generation() uint64 { return 7 }

func (j judge) Judge(_ context.Context, _ *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	address, name := q.Address, "envelope"
	if q.Stage == verdict.Header {
		name = [...]string{"header", "form", "word"}[q.Reading]
	}
	if strings.HasSuffix(address, "@") {
		return j.tableJudge[name+" "+address], nil
	}
	if address == "" {
		address = "<>"
	}
	if v, ok := j.tableJudge["clear "+address]; ok && q.Stage == verdict.Envelope {
		return v, nil
	}
	a, err := sender.Parse(address)
	if err != nil || address == "unreadable@example.com" || strings.Contains(address, "*") {
		return verdict.Verdict{}, errors.New("not understood")
	}
	v, ok := j.tableJudge[name+" "+a.String()]
	if !ok {
		v = j.tableJudge[name+" @"+a.Domain()]
	}
	if v.Match.Reason == failing {
		return verdict.Verdict{}, fmt.Errorf("%w: list test: a damaged block", verdict.ErrNoAnswer)
	}
	return v, nil
}

// failing marks a verdict that is none: the lists cannot be asked.
const failing = "\x00"

// add parses "STAGE ADDRESS ACTION [REASON]". The action "secret" rejects without showing
// the reason, "unconfirmed" rejects like a filter alone, "monitor" would reject, and
// "fail" means that the lists cannot be asked.
func (j tableJudge) add(text string) error {
	f := strings.SplitN(text, " ", 4)
	if len(f) < 3 {
		return errors.New("want STAGE ADDRESS ACTION [REASON]")
	}
	if a, err := sender.Parse(f[1]); err == nil {
		f[1] = a.String()
	} else if domain, err := sender.NormalizeDomain(strings.TrimPrefix(f[1], "@")); err == nil {
		f[1] = "@" + domain
	}
	m := verdict.Match{List: "test", Entry: f[1], File: "lists/test.txt", Line: 3, PublicReason: true}
	if len(f) == 4 {
		m.Reason = smtptest.Expand(f[3])
	}
	v := verdict.Verdict{}
	switch action := verdict.ActionOf(f[2]); {
	case action.String() == f[2] && action != verdict.Monitor:
		m.Action = action
		v = verdict.Verdict{Action: action, Match: m}
	case f[2] == "secret":
		m.Action, m.PublicReason = verdict.Reject, false
		v = verdict.Verdict{Action: verdict.Reject, Match: m}
	case f[2] == "unconfirmed":
		m.Action, m.Unconfirmed, m.File, m.Line = verdict.Reject, true, "", 0
		v = verdict.Verdict{Action: verdict.Reject, Match: m}
	case f[2] == "fail":
		v.Match.Reason = failing
	case f[2] == "monitor":
		m.Action = verdict.Reject
		v = verdict.Verdict{Monitored: []verdict.Match{m}}
	default:
		return fmt.Errorf("unknown action %q", f[2])
	}
	j[f[0]+" "+f[1]] = v
	return nil
}

func addPrefix(to *[]netip.Prefix, s string) error {
	prefix, err := netip.ParsePrefix(s)
	*to = append(*to, prefix)
	return err
}

// gate is a running Server.
type gate struct {
	server *smtpfilter.Server
	addr   string
	target nexthop.Target
	served chan error

	socket   *net.TCPListener
	listener *smtpfilter.Listener
	settings smtpfilter.Settings
}

type gateOptions struct {
	nextHop string // "host:port" of an SMTP server, or a target of its own
	target  nexthop.Target
	checker verdict.Checker
	policy  smtpfilter.Policy
	wire    smtpfilter.Settings // towards clients
	log     *slog.Logger
	show    func(string) string
	reuse   bool
	waits   nexthop.Timeouts // for the next hop
	auth    bool
	limiter *limit.Limiter
	tarpit  *limit.Tarpit
	names   smtpfilter.Names
	noNames bool
	meter   smtpfilter.Meter
	id      string // of the gate, in paths
	history smtpfilter.History
	memory  smtpfilter.Memory
}

// newGate starts a gate that ends with the test.
func newGate(t testing.TB, o gateOptions) *gate {
	t.Helper()
	return newGateOn(t, nil, o)
}

// newGateOn is newGate with a wrapper around the gate's socket.
func newGateOn(t testing.TB, counting *countingListener, o gateOptions) *gate {
	t.Helper()
	if o.target == nil {
		target, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: o.nextHop, Hostname: "gate.example", ProbeInterval: -1, Reuse: o.reuse, Timeouts: o.waits})
		if err != nil {
			t.Fatal(err)
		}
		o.target = target
	}
	if o.checker == nil {
		o.checker = tableJudge{}
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener = tcp
	if counting != nil {
		counting.Listener = tcp
		l = counting
	}
	g := &gate{
		addr:   tcp.Addr().String(),
		target: o.target,
		served: make(chan error, 1),

		socket: tcp.(*net.TCPListener),
		server: smtpfilter.New(smtpfilter.Config{Hostname: "gate.example", Log: o.log, ShowAddress: o.show, Names: o.names, Meter: o.meter, ID: o.id, History: o.history}),
	}
	s := o.wire
	s.Checker, s.NextHop, s.Policy = o.checker, o.target, o.policy
	s.NoNames, s.PassAuth = o.noNames, o.auth
	s.Limiter, s.Tarpit, s.Memory = o.limiter, o.tarpit, o.memory
	g.settings = s
	if g.listener, err = g.server.Listen(l, "", s); err != nil {
		t.Fatal(err)
	}
	go func() { g.served <- g.listener.Serve() }()
	t.Cleanup(func() { g.stop(t) })
	return g
}

// stop shuts the gate down at once. It may cut off mail.
func (g *gate) stop(t testing.TB) {
	if g.server == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.server.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-g.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if err := g.target.Close(); err != nil {
		t.Errorf("closing the next hop: %v", err)
	}
	g.server = nil
}

func mustJudge(t testing.TB, rows ...string) tableJudge {
	t.Helper()
	j := tableJudge{}
	for _, row := range rows {
		if err := j.add(row); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// countingListener reports every write to a client, and every read.
type countingListener struct {
	net.Listener
	onWrite func()
	onRead  func(n int) // nil: nobody wants to know
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.onWrite, l.onRead}, err
}

type countingConn struct {
	net.Conn
	onWrite func()
	onRead  func(n int)
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.onRead != nil {
		c.onRead(n)
	}
	return n, err
}

func (c countingConn) Write(p []byte) (int, error) {
	c.onWrite()
	return c.Conn.Write(p)
}

// lockedBuffer is a log that many goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
