package rhsbl

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestLimiter: a network gets its rate and one second's more at once, whatever the address
// in it, and another network has its own.
func TestLimiter(t *testing.T) {
	var l limiter
	l.init()
	burst := func(client string, elapsed time.Duration) (n int) {
		for l.allow(netip.MustParseAddr(client), 10, int64(elapsed)) {
			n++
		}
		return n
	}
	for _, tt := range []struct {
		client  string
		elapsed time.Duration
		want    int
	}{
		{"192.0.2.1", time.Hour, 10},
		{"192.0.2.200", time.Hour, 0},
		{"192.0.3.1", time.Hour, 10},
		{"2001:db8:0:1::1", time.Hour, 10},
		{"2001:db8:0:2::1", time.Hour, 0},
		{"2001:db8:1::1", time.Hour, 10},
		{"192.0.2.1", time.Hour + 99*time.Millisecond, 0},
		{"192.0.2.1", time.Hour + 500*time.Millisecond, 5},
		{"192.0.2.1", 2 * time.Hour, 10},
	} {
		if got := burst(tt.client, tt.elapsed); got != tt.want {
			t.Errorf("%s after %v: %d, want %d", tt.client, tt.elapsed, got, tt.want)
		}
	}
}

// TestFlood: a network beyond its rate gets no more bytes than it sends. This machine has
// no limit, TCP has none, and 0 is none.
func TestFlood(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	settings := zonesOf()
	far := netip.MustParseAddr("192.0.2.1")
	settings.AllowClients = append(settings.AllowClients, netip.PrefixFrom(far, 24))
	settings.NetworkAnswersPerSecond = 2
	s := newServer(t, lists, settings)
	question, _ := newQuestion("spam.example.bl.test", dns.TypeTXT).Pack()
	whole, small, none := 0, 0, 0
	for range 100 {
		answer := s.answer(question, far, true, nil)
		r := new(dns.Msg)
		switch {
		case answer == nil:
			none++
		case r.Unpack(answer) == nil && r.Truncated && len(r.Answer) == 0 && len(answer) <= len(question):
			small++
		default:
			whole++
		}
	}
	// The test may last longer than half a second, after which there is another answer.
	if whole < 2 || whole > 30 || small < 30 || none < 30 {
		t.Errorf("%d whole, %d small, %d none", whole, small, none)
	}
	counted := map[Outcome]uint64{}
	s.Counts(func(o Outcome, n uint64) { counted[o] = n })
	if counted[Listed] != uint64(whole) || counted[Truncated] != uint64(small) || counted[Dropped] != uint64(none) {
		t.Errorf("counted %v", counted)
	}
	for _, unlimited := range []func() []byte{
		func() []byte { return s.answer(question, far, false, nil) },
		func() []byte { return s.answer(question, local, true, nil) },
	} {
		for range 20 {
			if r := new(dns.Msg); r.Unpack(unlimited()) != nil || len(r.Answer) != 1 {
				t.Fatal(r)
			}
		}
	}
	settings.NetworkAnswersPerSecond = 0
	if err := s.Apply(settings); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if r := new(dns.Msg); r.Unpack(s.answer(question, far, true, nil)) != nil || len(r.Answer) != 1 {
			t.Fatal(r)
		}
	}
}
