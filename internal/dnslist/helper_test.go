package dnslist

import (
	"bytes"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/recent"
	"spamgate/smtpfilter/clientname/dnstest"
)

const zone = "dbl.test"

// resolverAddr is where tests say that their server is. Its Dial is used for any address.
var resolverAddr = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}

// world is a server in memory, a Client with one list, and the clock of a bubble.
type world struct {
	*testing.T
	*dnstest.Server
	client *Client
	log    *logText
	seen   int // queries that wantAsked has compared
}

// inBubble runs a test with a world whose lists have been checked. Without lists there is
// one, "dbl" of the zone dbl.test.
func inBubble(t *testing.T, f func(w *world), lists ...List) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if len(lists) == 0 {
			lists = []List{{Name: "dbl", Zone: zone}}
		}
		for _, l := range lists {
			w.list(l.testName()+"."+l.Zone, "127.0.0.2", 3600)
		}
		w.start(lists...)
		synctest.Wait()
		w.seen = len(w.Asked())
		f(w)
	})
}

func (l List) testName() string {
	if l.Test != "" {
		return l.Test
	}
	return DefaultTest
}

// newWorld returns a world without a Client.
func newWorld(t *testing.T) *world {
	w := &world{T: t, Server: dnstest.NewMemory(t), log: new(logText)}
	w.Behave(dnstest.Behavior{Negative: 60})
	return w
}

// start starts the Client.
func (w *world) start(lists ...List) {
	w.Helper()
	c, err := New(Config{
		Lists: lists, Resolvers: resolverAddr, Dial: w.Dial,
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.client = c
	w.Cleanup(c.Close)
}

// list adds addresses of a name, with a TTL in seconds.
func (w *world) list(name, addrs string, ttl uint32) {
	for a := range strings.FieldsSeq(addrs) {
		w.AddAddr(name, a, ttl)
	}
}

// result asks for one domain with a new message.
func (w *world) result(domain string) Result {
	return w.client.Message().Result(w.Context(), "dbl", domain)
}

// want compares what a new message gets for a domain.
func (w *world) want(domain, want string) {
	w.Helper()
	if got := say(w.result(domain)); got != want {
		w.Errorf("%s is %s, want %s", domain, got, want)
	}
}

// say returns a result in words: "listed example.org 127.0.0.2 (reason)".
func say(r Result) string {
	text := r.Outcome.String()
	if r.Outcome == Listed {
		text += " " + r.Name + " " + join(r.Codes)
	}
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	if r.Cause != "" {
		text += ": " + string(r.Cause)
	}
	if r.Defer {
		text += ", defer"
	}
	return text
}

// wantAsked compares the queries since the last call, in any order.
func (w *world) wantAsked(want ...string) {
	w.Helper()
	all := w.Asked()
	got := slices.Sorted(slices.Values(all[w.seen:]))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("asked %q, want %q", got, want)
	}
	w.seen = len(all)
}

// status returns the state of the only list.
func (w *world) status() Status { return w.client.Status()[0] }

// wantState compares the state of the only list, and a part of the reason or the warning.
func (w *world) wantState(want State, part string) {
	w.Helper()
	synctest.Wait()
	if s := w.status(); s.State != want || !strings.Contains(s.Reason+s.Warning, part) || part == "" && s.Reason+s.Warning != "" {
		w.Errorf("the list is %s: %q%q, want %s: %q", s.State, s.Reason, s.Warning, want, part)
	}
}

// wantWait compares how long a function takes.
func (w *world) wantWait(want time.Duration, f func()) {
	w.Helper()
	begun := time.Now()
	f()
	if got := time.Since(begun); got != want {
		w.Errorf("waited %v, want %v", got, want)
	}
}

// logText is the text of a log.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns the text since the last call.
func (l *logText) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// smallCache returns a cache for a test.
func smallCache(max int) *recent.Map[key, *entry] { return recent.New[key, *entry](max) }
