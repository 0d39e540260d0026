package milter

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door"
	"spamgate/internal/door/doortest"
	"spamgate/smtpfilter"
)

// checkerOnce makes a Checker with a list for each action.
var checkerOnce = sync.OnceValues(func() (doortest.Checker, error) {
	return doortest.New(
		doortest.List{Name: "always", Entries: "cleared@reject.example\n", List: store.List{Type: blocklist.Allow, Override: true}},
		doortest.List{Name: "blocked", Entries: "reject.example  # 100% bulk mail\n<>  # no bounces here\nann@mx.own.example\n", List: store.List{Action: verdict.Reject, PublicReason: true, Stages: verdict.AllStages}},
		doortest.List{Name: "later", Entries: "defer.example\n", List: store.List{Action: verdict.Defer}},
		doortest.Dropped,
		doortest.List{Name: "marked", Entries: "tag.example  # unsure\n", List: store.List{Action: verdict.Tag, PublicReason: true}},
		doortest.List{Name: "marked-too", Entries: "tag.example\n", List: store.List{Action: verdict.Tag}},
	)
})

// meter writes down what it counts.
type meter struct {
	smtpfilter.NoMeter
	mu          sync.Mutex
	all         []string
	connections int
}

func (m *meter) add(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, what)
}

func (m *meter) Message(_ string, o smtpfilter.Outcome)            { m.add(o.String()) }
func (m *meter) Recipient(_ string, o smtpfilter.RecipientOutcome) { m.add("to:" + o.String()) }
func (m *meter) Connected(string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections++
}
func (m *meter) Disconnected(string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections--
}

func (m *meter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.all, " ")
}

// lockedBuffer is a buffer that several goroutines may write to.
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

// testServer is a Server at an address of its own.
type testServer struct {
	*Server
	addr  string
	log   *lockedBuffer
	meter *meter
	ended chan error
}

// settings returns settings with the lists above.
func settings(t testing.TB) door.Settings {
	t.Helper()
	checker, err := checkerOnce()
	if err != nil {
		t.Fatal(err)
	}
	policy := smtpfilter.Policy{
		HeaderFields: []string{"From", "Sender"}, MaxHeaderBytes: 4096, MaxAddresses: 5, MaxFieldBytes: 1500,
		ExemptRecipients: []string{"abuse@"}, ExemptAuthenticated: true,
		ExemptClients: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32"), netip.MustParsePrefix("2001:db8::9/128"), netip.MustParsePrefix("0.0.0.0/32")},
	}
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	return door.Settings{Checker: checker, Policy: policy}
}

// newTestServer serves until stop, or the end of the test.
func newTestServer(t testing.TB) *testServer {
	t.Helper()
	g := &testServer{log: new(lockedBuffer), meter: new(meter), ended: make(chan error, 1)}
	g.Server = New(door.Config{Name: "beside", Log: slog.New(slog.NewTextHandler(g.log, nil)), Meter: g.meter}, settings(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	go func() { g.ended <- g.Serve(l) }()
	t.Cleanup(func() {
		if err := g.Shutdown(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return g
}

// stop ends the server after its connections, and checks that it counted their ends.
func (g *testServer) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := errors.Join(g.Shutdown(ctx), <-g.ended); err != nil {
		t.Error(err)
	}
	if g.meter.connections != 0 {
		t.Errorf("%d connections are counted at the end", g.meter.connections)
	}
}

// dial connects to the server.
func (g *testServer) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return c
}
