package dnslist

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/recent"
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

// BenchmarkCacheMemory measures how much memory a cached answer takes: a usual one (the
// domain is not listed), and the longest.
func BenchmarkCacheMemory(b *testing.B) {
	longest := answer{text: strings.Repeat("x", MaxReason), addrs: make([]netip.Addr, maxAddrs)}
	for _, v := range []struct {
		name, format string
		answer       answer
	}{
		{"usual", "mail%d.example.com", answer{}},
		{"longest", "%d." + strings.Repeat("a.", 110) + "example.com", longest},
	} {
		b.Run(v.name, func(b *testing.B) {
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				entries := recent.New[key, *entry](maxCached)
				for i := range maxCached {
					a := v.answer
					a.text, a.addrs = strings.Clone(a.text), slices.Clone(a.addrs)
					e := &entry{done: make(chan struct{}), answer: a}
					entries.Put(key{name: fmt.Sprintf(v.format, i), zone: zone, kind: dns.TypeA}, e)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(entries)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/maxCached, "B/answer")
		})
	}
}
