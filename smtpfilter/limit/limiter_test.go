package limit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestWho checks which addresses share the limits of a client or network.
func TestWho(t *testing.T) {
	cases := []struct {
		a, b            string
		client, network bool // shared
	}{
		{"192.0.2.1", "192.0.2.1", true, true},
		{"192.0.2.1", "::ffff:192.0.2.1", true, true},
		{"192.0.2.1", "192.0.2.255", false, true},
		{"192.0.2.1", "192.0.3.1", false, false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true, true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false, true},
		{"2001:db8:1:2::1", "2001:db8:1:ff00::1", false, true}, // the ends of a /48
		{"2001:db8:1::1", "2001:db8:1:ffff:ffff:ffff:ffff:ffff", false, true},
		{"2001:db8:1:2::1", "2001:db8:2:2::1", false, false},
		{"2001:db8:1:ffff::1", "2001:db8:2::1", false, false},
		{"fe80::1%eth0", "fe80::2%eth1", true, true},
		{"0.0.0.1", "::1", false, false},
		{"0.0.0.0", "::", false, false},
	}
	for _, c := range cases {
		for scope, shared := range map[string]bool{Client: c.client, Network: c.network} {
			config := Config{Client: Limits{MessagesPerMinute: 1}}
			if scope == Network {
				config = Config{Network: Limits{MessagesPerMinute: 1}}
			}
			l := New(config)
			if v := l.Message(addr(c.a)); !v.Allowed() {
				t.Errorf("%s: %v", c.a, v)
			}
			if v := l.Message(addr(c.b)); v.Allowed() == shared {
				t.Errorf("%s after %s: %v", c.b, c.a, v)
			} else if shared && (v.Limit != MessagesPerMinute || v.Scope != scope || v.Value != 1) {
				t.Errorf("%s after %s: %+v", c.b, c.a, v)
			}
		}
	}
}

// TestRate wants a burst as large as the limit, then one event at a time; a refused event
// uses nothing up.
func TestRate(t *testing.T) {
	for name, event := range map[string]func(*Limiter, netip.Addr) Result{
		ConnectionsPerMinute: func(l *Limiter, a netip.Addr) Result {
			ticket, v := l.Connect(a)
			ticket.Release()
			return v
		},
		MessagesPerMinute:   (*Limiter).Message,
		RecipientsPerMinute: (*Limiter).Recipient,
		ErrorsPerMinute:     (*Limiter).Error,
	} {
		clock := newClock()
		limits := Limits{ConnectionsPerMinute: 4, MessagesPerMinute: 4, RecipientsPerMinute: 4, ErrorsPerMinute: 4}
		l := New(Config{Client: limits, Now: clock.now})
		a := addr("192.0.2.1")
		steps := []struct {
			after   time.Duration
			allowed int
			retry   time.Duration
		}{
			{0, 4, 15 * time.Second},
			{14 * time.Second, 0, time.Second},
			{time.Second, 1, 15 * time.Second},
			{31 * time.Second, 2, 14 * time.Second},
			{time.Hour, 4, 15 * time.Second},
		}
		for i, step := range steps {
			clock.advance(step.after)
			for n := range step.allowed {
				if v := event(l, a); v != (Result{}) {
					t.Errorf("%s, step %d: number %d: %v", name, i, n, v)
				}
			}
			for range 3 {
				if v, want := event(l, a), (Result{name, Client, 4, step.retry}); v != want {
					t.Errorf("%s, step %d: got %+v, want %+v", name, i, v, want)
				}
			}
		}
	}
}

// TestErrorsKeepAway wants a client with too many errors to be refused until it may make
// another.
func TestErrorsKeepAway(t *testing.T) {
	clock := newClock()
	l := New(Config{Client: Limits{ErrorsPerMinute: 2}, Now: clock.now})
	a := addr("192.0.2.1")
	connect := func() Result {
		ticket, v := l.Connect(a)
		ticket.Release()
		return v
	}
	for range 2 {
		if v := connect(); !v.Allowed() {
			t.Error(v)
		}
		if v := l.Error(a); !v.Allowed() {
			t.Error(v)
		}
	}
	want := Result{ErrorsPerMinute, Client, 2, 30 * time.Second}
	if v := connect(); v != want {
		t.Errorf("%+v", v)
	}
	clock.advance(30 * time.Second)
	for range 3 { // connecting is no error
		if v := connect(); !v.Allowed() {
			t.Error(v)
		}
	}
}

// TestRefusedCountsNothing wants a refused event to change no count, in any scope.
func TestRefusedCountsNothing(t *testing.T) {
	l := New(Config{
		Client:         Limits{Connections: 1, ConnectionsPerMinute: 1},
		Network:        Limits{Connections: 2, ConnectionsPerMinute: 2},
		MaxConnections: 2,
	})
	if _, v := l.Connect(addr("192.0.2.1")); !v.Allowed() {
		t.Error(v)
	}
	for range 5 {
		if ticket, v := l.Connect(addr("192.0.2.1")); ticket != nil || v.Scope != Client {
			t.Error(v)
		}
	}
	if _, v := l.Connect(addr("192.0.2.2")); !v.Allowed() {
		t.Error(v)
	}
	for i := range 5 {
		if ticket, v := l.Connect(addr(fmt.Sprintf("192.0.2.1%d", i))); ticket != nil || v.Scope != Network {
			t.Error(v)
		}
		if ticket, v := l.Connect(addr(fmt.Sprintf("198.51.100.1%d", i))); ticket != nil || v.Scope != All {
			t.Error(v)
		}
	}
	if n, _ := l.size(t); n != 3 {
		t.Errorf("%d entries: the refused have some", n)
	}
}

func TestNothingLimited(t *testing.T) {
	for name, l := range map[string]*Limiter{"zero": New(Config{}), "negative": New(Config{MaxConnections: -1, Client: Limits{-1, -1, -1, -1, -1}}), "nil": nil} {
		for _, a := range []netip.Addr{addr("192.0.2.1"), {}} {
			ticket, v := l.Connect(a)
			for _, v := range []Result{v, l.Message(a), l.Recipient(a), l.Error(a)} {
				if v != (Result{}) {
					t.Errorf("%s: %v", name, v)
				}
			}
			ticket.Release()
		}
		if l != nil {
			if n, _ := l.size(t); n != 0 {
				t.Errorf("%s: %d entries", name, n)
			}
		}
	}
}

// TestExempt checks exempt clients, and clients without an address, which count towards
// MaxConnections.
func TestExempt(t *testing.T) {
	tight := Limits{1, 1, 1, 1, 1}
	l := New(Config{
		Client: tight, Network: tight, MaxConnections: 3,
		Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28"), netip.MustParsePrefix("fe80::/10")},
	})
	for _, a := range []netip.Addr{addr("192.0.2.1"), addr("::ffff:192.0.2.2"), addr("fe80::1%eth0")} {
		for range 3 {
			if _, v := l.Connect(a); !v.Allowed() {
				t.Error(a, v)
			}
			for _, v := range []Result{l.Message(a), l.Recipient(a), l.Error(a)} {
				if !v.Allowed() {
					t.Error(a, v)
				}
			}
		}
	}
	if _, v := l.Connect(addr("192.0.2.16")); v.Scope != All {
		t.Error(v)
	}
	if _, v := l.Connect(netip.Addr{}); v.Scope != All {
		t.Error(v)
	}
	if v := l.Message(netip.Addr{}); !v.Allowed() {
		t.Error(v)
	}
}

func TestSetConfig(t *testing.T) {
	clock := newClock()
	limits := func(n int) Config { return Config{Client: Limits{Connections: n, MessagesPerMinute: n}} }
	c := limits(2)
	c.Now = clock.now
	l := New(c)
	a := addr("192.0.2.1")
	l.Message(a) // half of what is allowed
	first, _ := l.Connect(a)
	l.SetConfig(limits(10))
	for range 5 {
		if v := l.Message(a); !v.Allowed() {
			t.Error(v)
		}
	}
	if v, want := l.Message(a), (Result{MessagesPerMinute, Client, 10, 6 * time.Second}); v != want {
		t.Errorf("%+v", v)
	}
	l.SetConfig(limits(1))
	if _, v := l.Connect(a); v.Limit != Connections || v.Value != 1 {
		t.Errorf("the open connection was forgotten: %+v", v)
	}
	l.SetConfig(Config{})
	if v := l.Message(a); !v.Allowed() {
		t.Error(v)
	}
	uncounted, v := l.Connect(a)
	if !v.Allowed() {
		t.Error(v)
	}
	l.SetConfig(limits(2))
	second, v := l.Connect(a)
	if !v.Allowed() {
		t.Error("a connection from before the limit counts:", v)
	}
	for _, ticket := range []*Ticket{first, first, uncounted, second} {
		ticket.Release()
	}
	if n := l.open; n != 0 {
		t.Errorf("%d open", n)
	}
	if entries, idle := l.size(t); entries != idle {
		t.Errorf("%d entries, %d idle", entries, idle)
	}
}

func TestResultString(t *testing.T) {
	for want, v := range map[string]Result{
		"allowed":                             {},
		"connections of a client: 3":          {Connections, Client, 3, 0},
		"connections of all clients: 500":     {Connections, All, 500, 0},
		"messages per minute of a client: 30": {MessagesPerMinute, Client, 30, time.Second},
		"errors per minute of a network: 9":   {ErrorsPerMinute, Network, 9, time.Second},
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestUncounted wants the open connections of uncounted clients to count towards
// MaxConnections only, and their rates to be limited.
func TestUncounted(t *testing.T) {
	l := New(Config{
		Client: Limits{Connections: 1, MessagesPerMinute: 1}, Network: Limits{Connections: 2}, MaxConnections: 6,
		Uncounted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	})
	var tickets []*Ticket
	for _, a := range []string{"127.0.0.1", "127.0.0.1", "::ffff:127.0.0.1", "::1", "::1", "192.0.2.1"} {
		ticket, v := l.Connect(addr(a))
		if !v.Allowed() {
			t.Error(a, v)
		}
		tickets = append(tickets, ticket)
	}
	if _, v := l.Connect(addr("192.0.2.1")); v.Key() != "client_connections" {
		t.Error(v)
	}
	if _, v := l.Connect(addr("127.0.0.1")); v.Key() != "max_connections" {
		t.Error(v)
	}
	l.Message(addr("127.0.0.1"))
	if v := l.Message(addr("127.0.0.1")); v.Key() != "client_messages_per_minute" {
		t.Error(v)
	}
	for _, ticket := range tickets {
		ticket.Release()
	}
	if l.open != 0 {
		t.Errorf("%d open", l.open)
	}
	if (Result{}).Key() != "" {
		t.Error("a limit that was not reached has a key")
	}
}

// TestConnectProxy wants only MaxConnections to apply to a proxy's own connection, and no
// limit to an exempt proxy.
func TestConnectProxy(t *testing.T) {
	l := New(Config{
		Client: Limits{Connections: 1, ConnectionsPerMinute: 1, ErrorsPerMinute: 1}, Network: Limits{Connections: 1}, MaxConnections: 3,
		Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/32")},
	})
	proxy := addr("192.0.2.1")
	l.Error(proxy)
	for range 3 {
		if _, v := l.ConnectProxy(proxy); !v.Allowed() {
			t.Error(v)
		}
	}
	if _, v := l.ConnectProxy(proxy); v.Key() != "max_connections" {
		t.Error(v)
	}
	if _, v := l.ConnectProxy(addr("192.0.2.2")); !v.Allowed() {
		t.Error(v)
	}
	if _, v := (*Limiter)(nil).ConnectProxy(proxy); !v.Allowed() {
		t.Error(v)
	}
}

// TestForgive wants an error that was taken back to leave nothing behind, for client and network,
// and to give no credit for later.
func TestForgive(t *testing.T) {
	clock := newClock()
	l := New(Config{Client: Limits{ErrorsPerMinute: 2}, Network: Limits{ErrorsPerMinute: 3}, Now: clock.now})
	a, b := addr("192.0.2.1"), addr("192.0.2.2")
	counts := func(a netip.Addr, want ...bool) {
		t.Helper()
		for i, allowed := range want {
			if v := l.Error(a); v.Allowed() != allowed {
				t.Errorf("error %d of %s: %v", i, a, v)
			}
		}
	}
	l.Forgive(a) // nothing is known of it
	for range 5 {
		counts(a, true)
		l.Forgive(a)
	}
	clock.advance(time.Hour)
	counts(a, true)
	clock.advance(time.Hour)
	l.Forgive(a)
	counts(a, true, true, false)
	counts(b, true, false)
	l.Forgive(b)
	counts(b, true, false)
	(*Limiter)(nil).Forgive(a)
	New(Config{}).Forgive(a)
	l.Forgive(netip.Addr{})
}
