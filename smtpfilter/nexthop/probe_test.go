package nexthop

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// logText is a log in memory.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// TestProbing: a target asks by itself what the next hop offers, at once and
// again, follows its changes, and keeps what it knows while it cannot ask.
func TestProbing(t *testing.T) {
	checkGoroutines(t)
	sink := smtptest.NewSink(t)
	log := new(logText)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), ProbeInterval: 5 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))})
	offers := func(want string) func() bool {
		return func() bool { return strings.Join(keywords(hop.Extensions()), " ") == want }
	}
	const usual = "8BITMIME DSN ENHANCEDSTATUSCODES PIPELINING SIZE SMTPUTF8 XFORWARD"
	waitFor(t, "the first probe", offers(usual))
	waitFor(t, "more probes", func() bool { return sink.Conns() >= 3 })
	sink.SetReply("EHLO", "250-x\n250 CHUNKING")
	waitFor(t, "the change", offers("CHUNKING"))
	sink.SetReply("EHLO", "421 later")
	waitFor(t, "the warning", func() bool { return log.count("level=WARN") == 1 })
	before := sink.Conns()
	waitFor(t, "failing probes", func() bool { return sink.Conns() >= before+3 })
	if s := States(hop); len(s) != 1 || s[0].Up || !s[0].Known || s[0].Target != hop.String() {
		t.Errorf("while probes fail its state is %+v", s)
	}
	if !offers("CHUNKING")() {
		t.Errorf("forgotten by failed probes: %v", hop.Extensions())
	}
	sink.SetReply("EHLO", "")
	waitFor(t, "the next good probe", offers(usual))
	waitFor(t, "its state", func() bool { s := States(hop); return len(s) == 1 && s[0].Up && s[0].Known })
	waitFor(t, "its log", func() bool { return log.count("can be probed again") == 1 })
	hop.Close()
	if warnings, changes := log.count("level=WARN"), log.count("offers have changed"); warnings != 1 || changes != 2 {
		t.Errorf("%d warnings and %d changes in the log:\n%s", warnings, changes, log.text.String())
	}
	if err := hop.Probe(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("probed after Close: %v", err)
	}
}

// TestWarnsWithoutXCLIENT checks the warning that XCLIENT is needed and not offered: once,
// and again after it was offered in between.
func TestWarnsWithoutXCLIENT(t *testing.T) {
	sink := smtptest.NewSink(t)
	log := new(logText)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Identity: IdentityXCLIENT, ProbeInterval: -1,
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	for i, c := range []struct {
		ehlo string
		want int
	}{{"", 1}, {"", 1}, {"250-x\n250 XCLIENT ADDR", 1}, {"500 no", 2}} {
		sink.SetReply("EHLO", c.ehlo)
		if err := hop.Probe(t.Context()); err != nil && !errors.Is(err, ErrNoXCLIENT) {
			t.Fatal(err)
		}
		if n := log.count("smtpd_authorized_xclient_hosts"); n != c.want {
			t.Errorf("%d: %d warnings, not %d:\n%s", i, n, c.want, log.text.String())
		}
	}
}

// TestNeverHeard: a next hop that has said nothing yet is not said to have.
func TestNeverHeard(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"GREETING": "421 later"}})
	log := new(logText)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), ProbeInterval: time.Hour,
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	hop.WaitKnown(t.Context())
	if log.count("default offers") != 1 || log.count("last known") != 0 {
		t.Error(log.text.String())
	}
}

// TestCloseEndsProbe: Close does not wait for a next hop that says nothing.
func TestCloseEndsProbe(t *testing.T) {
	checkGoroutines(t)
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"GREETING": smtptest.Silence}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), ProbeInterval: time.Hour})
	waitFor(t, "the probe", func() bool { return sink.Conns() == 1 })
	hop.Close()
	sink.WaitConns(0)
}

// TestMailSparesProbe: who connects learns what a probe would.
func TestMailSparesProbe(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	if _, err := deliver(hop, "a@example.com", nil, whole); err != nil {
		t.Fatal(err)
	}
	if !hop.Extensions().Has("DSN") {
		t.Error("nothing learnt from mail")
	}
	since := hop.known.heard.Load()
	if age := time.Since(time.Unix(0, since)); age < 0 || age > time.Minute {
		t.Errorf("heard %v ago", age)
	}
}

// TestSharedOffers: who looks at the keywords often gets one map.
func TestSharedOffers(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"SIZE 10"}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	if err := hop.Probe(context.Background()); err != nil {
		t.Fatal(err)
	}
	sink.WaitConns(0) // what ends allocates, too
	if n := testing.AllocsPerRun(100, func() { hop.Extensions() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := hop.Extensions()["SIZE"]; !slices.Equal(got, []string{"10"}) {
		t.Errorf("SIZE %q", got)
	}
}

// TestWaitKnown waits for the first probe: afterwards the offers are known, unless nobody
// answers.
func TestWaitKnown(t *testing.T) {
	there := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"DSN"}})
	for addr, offers := range map[string]bool{there.Addr(): true, smtptest.Unreachable(t): false} {
		s, err := NewSMTP(SMTPConfig{Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		s.WaitKnown(t.Context())
		if s.Extensions().Has("DSN") != offers {
			t.Errorf("%s: %v", addr, s.Extensions())
		}
		s.Close()
		s.WaitKnown(t.Context())
	}
}
