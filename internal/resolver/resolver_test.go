package resolver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"spamgate/smtpfilter/clientname/dnstest"
)

// timeout is that of a question.
const timeout = 2 * time.Second

// TestSeveralResolvers: the second one answers if the first one does not.
func TestSeveralResolvers(t *testing.T) {
	for _, c := range []struct {
		name  string
		first dnstest.Behavior
		wait  time.Duration // for the first question
	}{
		{"silent", dnstest.Behavior{Lie: func([]byte, string) [][]byte { return nil }}, timeout / 2},
		{"gone", dnstest.Behavior{Refuse: true}, 0},
		{"failing", dnstest.Behavior{Fail: true}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := dnstest.NewMemory(t)
				second := dnstest.NewMemory(t)
				first.AddAddr("a.example", "192.0.2.9", 60)
				second.AddAddr("a.example", "192.0.2.9", 60)
				first.Behave(c.first)
				r := New(func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "[2001:db8::2]:53" {
						return second.Dial(ctx, network, address)
					}
					return first.Dial(ctx, network, address)
				}, "")
				r.Configure([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("[2001:db8::2]:53")})
				ask := func(wait time.Duration) {
					t.Helper()
					begun := time.Now()
					m, cause := r.Ask(t.Context(), "a.example", dns.TypeA, timeout)
					if cause != "" || len(m.Answer) != 1 {
						t.Errorf("got %v, %s", m, cause)
					}
					if got := time.Since(begun); got != wait {
						t.Errorf("waited %v, want %v", got, wait)
					}
				}
				ask(c.wait)
				ask(0) // the one that answered is asked first now
				second.Behave(c.first)
				first.Behave(dnstest.Behavior{})
				ask(c.wait)
				ask(0)
			})
		})
	}
}

// TestResolvConf: the servers are those of a file, which is read again when it changes.
func TestResolvConf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, file)
		r.Configure(nil)
		changes := 0
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			changes++
			instant := time.Unix(1e9+int64(changes), 0)
			os.Chtimes(file, instant, instant)
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
		r.Configure([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.3:5353")})
		want("192.0.2.3:5353")
	})
}

// TestManyQuestions: the sockets at a time are bounded, and the rest waits or is not asked.
func TestManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := dnstest.NewMemory(t)
		hold := make(chan struct{})
		s.Behave(dnstest.Behavior{Hold: hold})
		r := New(s.Dial, "")
		r.Configure([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53")})
		var asking sync.WaitGroup
		var mu sync.Mutex
		causes := map[Cause]int{}
		for i := range maxWaiting + 10 {
			asking.Go(func() {
				_, cause := r.Ask(t.Context(), fmt.Sprintf("d%d.example", i), dns.TypeA, time.Second)
				mu.Lock()
				defer mu.Unlock()
				causes[cause]++
			})
		}
		synctest.Wait()
		if asked := len(s.Asked()); asked != maxQuestions || causes[Busy] != 10 {
			t.Errorf("%d questions are under way, and %d are refused", asked, causes[Busy])
		}
		close(hold)
		asking.Wait()
		if causes[""] != maxWaiting {
			t.Errorf("%v", causes)
		}
	})
}

// TestNobodyListens: a resolver that is not running is noticed at once.
func TestNobodyListens(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(l.LocalAddr().String())
	l.Close()
	r := New(nil, "")
	r.Configure([]netip.AddrPort{addr})
	if _, cause := r.Ask(t.Context(), "a.example", dns.TypeA, time.Hour); cause != Network {
		t.Errorf("got %q, want %q", cause, Network)
	}
}
