package clientname

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"spamgate/internal/recent"
	"spamgate/smtpfilter/clientname/dnstest"
)

// The hosts file does not have the clients of these tests.
const (
	addr  = "192.0.2.1"
	other = "192.0.2.2"
)

// clock is a clock that only advance moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newNames returns a Names with its own name server and clock.
func newNames(t *testing.T) (*Names, *dnstest.Server, *clock) {
	t.Helper()
	s := dnstest.New(t, "127.0.0.1:0")
	n := New(s.Dial)
	c := &clock{now: time.Unix(1e9, 0)}
	n.now = c.Now
	t.Cleanup(n.Close)
	return n, s, c
}

func (n *Names) want(t *testing.T, addr, want string) {
	t.Helper()
	if got := n.Name(t.Context(), netip.MustParseAddr(addr)); got != want {
		t.Errorf("%s is %q, want %q", addr, got, want)
	}
}

// wantAsked compares the queries since the last call.
func wantAsked(t *testing.T, s *dnstest.Server, since *int, want ...string) {
	t.Helper()
	all := s.Asked()
	if got := all[*since:]; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	*since = len(all)
}

func ptr(a, network string) string {
	return fmt.Sprintf("PTR %s %s", dnstest.Reverse(netip.MustParseAddr(a)), network)
}

// TestNames checks which names count.
func TestNames(t *testing.T) {
	n, s, _ := newNames(t)
	s.AddHost("mx.example.com", addr, 60)
	s.AddPTR(other, "mx.example.com", 60)
	s.AddPTR("192.0.2.3", "gone.example", 60)
	s.AddHost("bad+name.example", "192.0.2.4", 60)
	s.AddHost("six.example", "2001:db8::1", 60)
	s.AddAddr("six.example", "192.0.2.6", 60)
	for _, c := range []struct{ addr, want string }{
		{addr, "mx.example.com"},
		{"::ffff:" + addr, "mx.example.com"},
		{other, ""},       // the name is somebody else's
		{"192.0.2.3", ""}, // the name has no address
		{"192.0.2.4", ""}, // no name for a command
		{"192.0.2.5", ""},
		{"2001:db8::1", "six.example"},
		{"2001:db8::2", ""},
	} {
		n.want(t, c.addr, c.want)
	}
	if got := n.Name(t.Context(), netip.Addr{}); got != "" {
		t.Errorf("no address has the name %q", got)
	}
}

// TestLifetimes is about how long an answer is kept.
func TestLifetimes(t *testing.T) {
	known := func(s *dnstest.Server, ptrTTL, addrTTL uint32) {
		s.AddPTR(addr, "mx.example.com", ptrTTL)
		s.AddAddr("mx.example.com", addr, addrTTL)
	}
	for _, c := range []struct {
		name  string
		zone  func(*dnstest.Server)
		want  string
		lasts time.Duration
	}{
		{"the address's TTL", func(s *dnstest.Server) { known(s, 600, 90) }, "mx.example.com", 90 * time.Second},
		{"the name's TTL", func(s *dnstest.Server) { known(s, 30, 90) }, "mx.example.com", 30 * time.Second},
		{"none", func(s *dnstest.Server) { known(s, 0, 90) }, "mx.example.com", minTTL},
		{"the least of two", func(s *dnstest.Server) {
			known(s, 600, 90)
			s.AddAddr("mx.example.com", other, 40)
		}, "mx.example.com", 40 * time.Second},
		{"a week", func(s *dnstest.Server) { known(s, 604800, 604800) }, "mx.example.com", maxTTL},
		{"over TCP", func(s *dnstest.Server) { known(s, 600, 90); s.Behave(dnstest.Behavior{Truncate: true}) }, "mx.example.com", 90 * time.Second},
		{"no name", func(s *dnstest.Server) { s.Behave(dnstest.Behavior{Negative: 120}) }, "", 2 * time.Minute},
		{"no address", func(s *dnstest.Server) {
			s.AddPTR(addr, "mx.example.com", 600)
			s.Behave(dnstest.Behavior{Negative: 40})
		}, "", 40 * time.Second},
		{"somebody else's", func(s *dnstest.Server) {
			s.AddPTR(addr, "mx.example.com", 600)
			s.AddAddr("mx.example.com", other, 70)
		}, "", 70 * time.Second},
		{"a server that fails", func(s *dnstest.Server) { s.Behave(dnstest.Behavior{Fail: true}) }, "", defaultTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, s, clock := newNames(t)
			c.zone(s)
			for range 5 {
				n.want(t, addr, c.want)
			}
			first := len(s.Asked())
			clock.advance(c.lasts - 1)
			n.want(t, addr, c.want)
			if again := len(s.Asked()) - first; first == 0 || again != 0 {
				t.Errorf("asked %d questions, and %d before the answer was old", first, again)
			}
			clock.advance(1)
			n.want(t, addr, c.want)
			if again := len(s.Asked()) - first; again != first {
				t.Errorf("asked %d questions at first, then %d", first, again)
			}
		})
	}
}

// TestAskedOnce opens many connections of one client at a time.
func TestAskedOnce(t *testing.T) {
	n, s, _ := newNames(t)
	s.AddHost("mx.example.com", addr, 60)
	hold := make(chan struct{})
	s.Behave(dnstest.Behavior{Hold: hold})
	var waiting sync.WaitGroup
	for range 50 {
		waiting.Go(func() {
			n.Ask(netip.MustParseAddr(addr))
			n.want(t, addr, "mx.example.com")
		})
	}
	s.Wait(t.Context(), t, 1)
	close(hold)
	waiting.Wait()
	asked := 0
	wantAsked(t, s, &asked, ptr(addr, "udp"), "A mx.example.com. udp")
}

// TestNobodyWaitsForAsk calls Ask with a name server that does not answer.
func TestNobodyWaitsForAsk(t *testing.T) {
	n, s, _ := newNames(t)
	s.Behave(dnstest.Behavior{Hold: make(chan struct{})})
	n.Ask(netip.MustParseAddr(addr))
	s.Wait(t.Context(), t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := n.Name(ctx, netip.MustParseAddr(addr)); got != "" {
		t.Errorf("got %q from a server that says nothing", got)
	}
	// A flood of clients is not asked for beyond the bound.
	for i := range 10 * maxPrefetch {
		n.Ask(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}))
	}
	n.mu.Lock()
	kept := n.cache.Len()
	n.mu.Unlock()
	if kept != maxPrefetch {
		t.Errorf("%d clients are asked for, want %d", kept, maxPrefetch)
	}
	n.Close()
	n.want(t, other, "")
}

// TestTimeout waits for a name server that does not answer.
func TestTimeout(t *testing.T) {
	t.Parallel()
	n, s, _ := newNames(t)
	s.Behave(dnstest.Behavior{Hold: make(chan struct{})})
	n.want(t, addr, "")
	asked := len(s.Asked())
	n.want(t, addr, "") // the failure is kept
	if again := len(s.Asked()) - asked; again != 0 {
		t.Errorf("asked %d times more", again)
	}
}

// TestNamesBound looks up a flood of clients.
func TestNamesBound(t *testing.T) {
	n := New(func(context.Context, string, string) (net.Conn, error) { return nil, context.DeadlineExceeded })
	defer n.Close()
	const most = 100
	n.cache = recent.New[netip.Addr, *entry](most)
	for i := range 1000 {
		n.want(t, netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(i >> 8), 15: byte(i)}).String(), "")
		n.want(t, addr, "") // stays, since it is used
		if kept := n.cache.Len(); kept > most {
			t.Fatalf("%d clients are kept, want %d at most", kept, most)
		}
	}
	if _, ok := n.cache.Get(netip.MustParseAddr(addr)); !ok {
		t.Error("a client that comes all the time is forgotten")
	}
}

// FuzzTTL parses whatever a name server sends without a panic.
func FuzzTTL(f *testing.F) {
	f.Add([]byte("\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		var l leastTTL
		l.add(message)
		if d := l.bounded(); d < minTTL || d > maxTTL {
			t.Errorf("cached for %v", d)
		}
	})
}

// BenchmarkName compares a cached answer with a query to a server on loopback.
func BenchmarkName(b *testing.B) {
	s := dnstest.New(b, "127.0.0.1:0")
	s.AddHost("mx.example.com", addr, 3600)
	n := New(s.Dial)
	defer n.Close()
	client := netip.MustParseAddr(addr)
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			n.Name(b.Context(), client)
		}
	})
	b.Run("asked", func(b *testing.B) {
		for b.Loop() {
			lookup(b.Context(), s.Dial, client)
		}
	})
}
