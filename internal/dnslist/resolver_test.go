package dnslist

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"spamgate/smtpfilter/clientname/dnstest"
)

// TestSeveralResolvers: the second one answers if the first one does not.
func TestSeveralResolvers(t *testing.T) {
	for _, c := range []struct {
		name  string
		first dnstest.Behavior
		wait  time.Duration // for the first question
	}{
		{"silent", dnstest.Behavior{Lie: func([]byte, string) [][]byte { return nil }}, DefaultTimeout / 2},
		{"gone", dnstest.Behavior{Refuse: true}, 0},
		{"failing", dnstest.Behavior{Fail: true}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				second := dnstest.NewMemory(t)
				w.list("listed.example.dbl.test", "127.0.0.2", 60)
				second.AddAddr("listed.example.dbl.test", "127.0.0.2", 60)
				second.AddAddr("test.dbl.test", "127.0.0.2", 60)
				w.Behave(c.first)
				r := newResolver(func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "[2001:db8::2]:53" {
						return second.Dial(ctx, network, address)
					}
					return w.Dial(ctx, network, address)
				}, "")
				r.configure([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("[2001:db8::2]:53")})
				ask := func() {
					t.Helper()
					if a := r.ask(w.Context(), "listed.example.dbl.test", dns.TypeA, DefaultTimeout); join(a.addrs) != "127.0.0.2" {
						t.Errorf("got %+v", a)
					}
				}
				w.wantWait(c.wait, ask)
				w.wantWait(0, ask) // the one that answered is asked first now
				second.Behave(c.first)
				w.Behave(dnstest.Behavior{})
				w.wantWait(c.wait, ask)
				w.wantWait(0, ask)
			})
		})
	}
}

// TestResolvConf: the servers are those of a file, which is read again when it changes.
func TestResolvConf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(nil, file)
		r.configure(nil)
		changes := 0
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			changes++
			at := time.Unix(1e9+int64(changes), 0)
			os.Chtimes(file, at, at)
		}
		want := func(want ...string) {
			t.Helper()
			time.Sleep(confInterval)
			if got := r.current(); !slices.Equal(got, want) {
				t.Errorf("servers %q, want %q", got, want)
			}
		}
		want("127.0.0.1:53") // no file
		write("# none\nsearch example.org\n")
		want("127.0.0.1:53")
		write("nameserver 192.0.2.1\nnameserver 2001:db8::1\noptions edns0\nnameserver fe80::1%eth0\nnameserver localhost\n")
		want("192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%eth0]:53")
		write("nameserver 192.0.2.2\n")
		if got := r.current(); len(got) != 3 {
			t.Errorf("read again before its time: %q", got)
		}
		want("192.0.2.2:53")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		want("192.0.2.2:53") // while it is replaced
		r.configure([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.3:5353")})
		want("192.0.2.3:5353")
	})
}

// TestManyQuestions: the sockets at a time are bounded, and the rest waits or is not asked.
func TestManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hold := make(chan struct{})
		w.Behave(dnstest.Behavior{Hold: hold})
		r := newResolver(w.Dial, "")
		r.configure(resolverAddr)
		var asking sync.WaitGroup
		var mu sync.Mutex
		causes := map[Cause]int{}
		for i := range maxWaiting + 10 {
			asking.Go(func() {
				a := r.ask(w.Context(), fmt.Sprintf("d%d.example", i), dns.TypeA, time.Second)
				mu.Lock()
				defer mu.Unlock()
				causes[a.cause]++
			})
		}
		synctest.Wait()
		if asked := len(w.Asked()); asked != maxQuestions || causes[CauseBusy] != 10 {
			t.Errorf("%d questions are under way, and %d are refused", asked, causes[CauseBusy])
		}
		close(hold)
		asking.Wait()
		if causes[""] != maxWaiting {
			t.Errorf("%v", causes)
		}
	})
}

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

// TestNobodyListens: a resolver that is not running is noticed at once.
func TestNobodyListens(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(l.LocalAddr().String())
	l.Close()
	r := newResolver(nil, "")
	r.configure([]netip.AddrPort{addr})
	if a := r.ask(t.Context(), "listed.example.dbl.test", dns.TypeA, time.Hour); a.cause != CauseNetwork {
		t.Errorf("got %+v", a)
	}
}
