package dnslist

import (
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"spamgate/smtpfilter/clientname/dnstest"
)

// newBench returns a Client with one list on a server on loopback.
func newBench(tb testing.TB) (*Client, *dnstest.Server) {
	s := dnstest.New(tb, "127.0.0.1:0")
	s.Behave(dnstest.Behavior{Negative: 3600})
	s.AddAddr("test.dbl.test", "127.0.0.2", 3600)
	s.AddAddr("listed.example.dbl.test", "127.0.0.2", 3600)
	s.AddText("listed.example.dbl.test", "listed here", 3600)
	c, err := New(Config{
		Lists:     []List{{Name: "dbl", Zone: zone, Timeout: time.Minute}},
		Resolvers: []netip.AddrPort{netip.MustParseAddrPort(s.Addr())},
		Log:       slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c, s
}

// BenchmarkMessage compares what a message with one sender costs: its questions are cached,
// or a server on loopback answers them.
func BenchmarkMessage(b *testing.B) {
	c, _ := newBench(b)
	message := func(b *testing.B, domain string, want Outcome) {
		m := c.Message()
		m.Ask("dbl", domain)
		if r := m.Result(b.Context(), "dbl", domain); r.Outcome != want {
			b.Fatal(say(r))
		}
	}
	for _, v := range []struct {
		name, domain string
		outcome      Outcome
	}{
		{"cached", "good.example", NotListed},
		{"cached, with a parent", "mail.good.example", NotListed},
		{"cached, listed", "listed.example", Listed},
	} {
		b.Run(v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				message(b, v.domain, v.outcome)
			}
		})
	}
	b.Run("asked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.cache.mu.Lock()
			c.cache.entries = smallCache(100)
			c.cache.mu.Unlock()
			message(b, "good.example", NotListed)
		}
	})
}

// TestAllocations bounds what a message allocates if all answers are cached.
func TestAllocations(t *testing.T) {
	c, _ := newBench(t)
	for domain, most := range map[string]float64{"good.example": 8, "mail.good.example": 12, "listed.example": 10} {
		message := func() {
			m := c.Message()
			m.Ask("dbl", domain)
			m.Result(t.Context(), "dbl", domain)
		}
		message()
		if got := testing.AllocsPerRun(100, message); got > most {
			t.Errorf("%s: a message allocates %v times, want at most %v", domain, got, most)
		}
	}
}
