package dnslist

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"spamgate/smtpfilter/clientname/dnstest"
)

// TestCacheBound asks for more names than the cache holds.
func TestCacheBound(t *testing.T) {
	inBubble(t, func(w *world) {
		w.client.cache.mu.Lock()
		w.client.cache.entries = smallCache(100)
		w.client.cache.mu.Unlock()
		for i := range 500 {
			w.want(fmt.Sprintf("d%d.example", i), "not listed")
			if n := w.client.cache.entries.Len(); n > 100 {
				t.Fatalf("%d answers are cached", n)
			}
		}
	})
}

// TestSockets asks over real sockets.
func TestSockets(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		if l, err := net.Listen("tcp", addr); err != nil {
			continue // a machine without IPv6
		} else {
			l.Close()
		}
		for _, truncate := range []bool{false, true} {
			s := dnstest.New(t, addr)
			s.AddAddr("test.dbl.test", "127.0.0.2", 60)
			s.AddAddr("listed.example.dbl.test", "127.0.0.2", 60)
			s.AddText("listed.example.dbl.test", "listed here", 60)
			s.Behave(dnstest.Behavior{Truncate: truncate})
			c, err := New(Config{
				Lists:     []List{{Name: "dbl", Zone: zone, Timeout: time.Minute}},
				Resolvers: []netip.AddrPort{netip.MustParseAddrPort(s.Addr())},
				Log:       slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			m := c.Message()
			if got := say(m.Result(t.Context(), "dbl", "www.listed.example")); got != "listed listed.example 127.0.0.2 (listed here)" {
				t.Errorf("%s, truncated %v: %s", addr, truncate, got)
			}
			if got := say(m.Result(t.Context(), "dbl", "good.example")); got != "not listed" {
				t.Errorf("%s, truncated %v: %s", addr, truncate, got)
			}
			if tcp := strings.Contains(strings.Join(s.Asked(), " "), " tcp"); tcp != truncate {
				t.Errorf("asked %q", s.Asked())
			}
		}
	}
}
