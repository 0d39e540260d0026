package nexthop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// TestStaysWithMember: once a recipient was answered no other member is asked.
func TestStaysWithMember(t *testing.T) {
	first, a := newHost(t, smtptest.Config{Replies: map[string]string{"RCPT TO:<c@example.net>": smtptest.Close}})
	second, b := newHost(t, smtptest.Config{})
	g, _ := testGroup(t, GroupConfig{}, a, b)
	tx := g.Begin(Envelope{From: "a@example.com"})
	ctx := context.Background()
	if reply, err := tx.Rcpt(ctx, "b@example.net", nil); err != nil || !reply.Positive() {
		t.Fatal(reply, err)
	}
	_, err := tx.Rcpt(ctx, "c@example.net", nil)
	if err == nil {
		t.Error("no error")
	}
	if _, _, again := tx.Data(ctx, Stuffed); again == nil {
		t.Error("DATA after it: no error")
	}
	tx.Abort()
	first.check(1, 0)
	second.check(0, 0)
}

func TestRoundRobin(t *testing.T) {
	var members []Target
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, &fakeTarget{name: name})
	}
	clock := newTestClock()
	g, _ := testGroup(t, GroupConfig{Balance: RoundRobin, clock: clock.clock()}, members...)
	send := func(n int) string {
		var got []string
		for range n {
			reply, err := g.Begin(Envelope{}).Rcpt(context.Background(), "b@example.net", nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, reply.Lines[0])
		}
		return strings.Join(got, "")
	}
	if got := send(6); got != "abcabc" {
		t.Error(got)
	}
	members[1].(*fakeTarget).err = errStop
	if got := send(3); strings.Contains(got, "b") {
		t.Error(got)
	}
	got := send(6)
	if strings.Count(got, "a") != 3 || strings.Count(got, "c") != 3 {
		t.Error(got)
	}
	members[1].(*fakeTarget).err = nil
	clock.advance(time.Second)
	if got := send(6); strings.Count(got, "b") != 2 {
		t.Error(got)
	}
}

// TestNoFailure: what is not a member's fault does not take it down.
func TestNoFailure(t *testing.T) {
	notOffered := fmt.Errorf("SMTPUTF8: %w", ErrNotOffered)
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(errStop)
	for name, c := range map[string]struct {
		ctx       context.Context
		env       Envelope
		to        string
		err, want error // of the first member; of the call
		second    int   // how often the second member is asked
	}{
		"not offered":   {ctx: context.Background(), err: notOffered, second: 1},
		"no XCLIENT":    {ctx: context.Background(), err: ErrNoXCLIENT, second: 1},
		"not encrypted": {ctx: context.Background(), err: ErrRequireTLS, second: 1},
		"cancelled":     {ctx: cancelled, err: errStop, want: errStop},
		"aborted":       {ctx: context.Background(), err: ErrAborted, want: ErrAborted},
		"closed":        {ctx: context.Background(), err: ErrClosed, want: ErrClosed},
		"bad recipient": {ctx: context.Background(), to: "\r\n", err: errStop, want: errStop},
		"bad sender":    {ctx: context.Background(), env: Envelope{From: "\x00"}, err: errStop, want: errStop},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := &fakeTarget{name: "a", err: c.err}, &fakeTarget{name: "b"}
			g, _ := testGroup(t, GroupConfig{}, a, b)
			tx := g.Begin(c.env)
			_, err := tx.Rcpt(c.ctx, c.to, nil)
			if !errors.Is(err, c.want) || b.asked != c.second || !g.members[0].up() || !g.members[1].up() {
				t.Errorf("%v, second asked %d times", err, b.asked)
			}
			if c.want == nil {
				return
			}
			if _, again := tx.Rcpt(c.ctx, c.to, nil); again != err || a.asked != 1 {
				t.Errorf("asked again: %v", again)
			}
			if _, _, again := tx.Data(c.ctx, Stuffed); again != err {
				t.Errorf("DATA: %v", again)
			}
		})
	}
}

// TestGroupAbort: before, while and after a member is asked.
func TestGroupAbort(t *testing.T) {
	checkGoroutines(t)
	asked := make(chan struct{})
	silent, a := newHost(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		if c.Verb() == "RCPT" {
			close(asked)
			return smtptest.Silence
		}
		return ""
	}})
	other, b := newHost(t, smtptest.Config{})
	g, _ := testGroup(t, GroupConfig{}, a, b)
	ctx := context.Background()

	tx := g.Begin(Envelope{From: "a@example.com"})
	tx.Abort()
	tx.Abort()
	if _, err := tx.Rcpt(ctx, "b@example.net", nil); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
	silent.check(0, 0)

	tx = g.Begin(Envelope{From: "a@example.com"})
	go func() {
		<-asked
		tx.Abort()
	}()
	if _, err := tx.Rcpt(ctx, "b@example.net", nil); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
	other.check(0, 0)
	if !g.members[0].up() {
		t.Error("taken for down")
	}

	silent.start(smtptest.Config{})
	tx, m, err := begin(g, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	m.Write([]byte("x: y\r\n"))
	tx.Abort()
	if _, err := m.Commit(ctx); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
	silent.sink.WaitConns(0)
	silent.check(2, 0)
}

func TestGroupMisuse(t *testing.T) {
	if _, err := NewGroup(nil, GroupConfig{}); err == nil {
		t.Error("no members: no error")
	}
	member := []Target{&fakeTarget{name: "a"}}
	for _, c := range []GroupConfig{{BackoffMin: -1}, {BackoffMin: 2 * time.Minute}, {BackoffMax: time.Millisecond}} {
		if _, err := NewGroup(member, c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	g, _ := testGroup(t, GroupConfig{}, member...)
	tx := g.Begin(Envelope{})
	if _, _, err := tx.Data(context.Background(), Stuffed); err == nil {
		t.Error("DATA without a recipient: no error")
	}
}

// TestLookupOnce: the client's name is looked up once, however many members want
// to know it.
func TestLookupOnce(t *testing.T) {
	lookups := 0
	env := Envelope{Client: Client{LookupName: func(context.Context) string { lookups++; return "" }}}
	g, _ := testGroup(t, GroupConfig{}, &fakeTarget{name: "a", err: errStop}, &fakeTarget{name: "b", err: errStop}, &fakeTarget{name: "c"})
	if _, err := g.Begin(env).Rcpt(context.Background(), "b@example.net", nil); err != nil || lookups != 1 {
		t.Errorf("%d lookups, %v", lookups, err)
	}
}

func TestGroupNames(t *testing.T) {
	a, b := &fakeTarget{name: "a"}, &fakeTarget{name: "b"}
	g, _ := testGroup(t, GroupConfig{}, a, b)
	if g.String() != "[a, b]" || !slices.Equal(g.Members(), []Target{a, b}) {
		t.Errorf("%s, %v", g, g.Members())
	}
	if err := g.Close(); err != nil || a.closed != 1 || b.closed != 1 {
		t.Errorf("closed %d and %d times, %v", a.closed, b.closed, err)
	}
}

// TestGroupAtOnce: clients, failures and probes at the same time.
func TestGroupAtOnce(t *testing.T) {
	checkGoroutines(t)
	first, a := newHost(t, smtptest.Config{})
	second, b := newHost(t, smtptest.Config{})
	var probes sync.Mutex
	up := false
	withProbe := probed{a, func(context.Context) error {
		probes.Lock()
		defer probes.Unlock()
		if up = !up; up {
			return nil
		}
		return errStop
	}}
	g, _ := testGroup(t, GroupConfig{Balance: RoundRobin, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}, withProbe, b)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for i := range 20 {
				if reply, err := deliver(g, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
					t.Error(reply, err)
				}
				if i%5 == 0 {
					g.members[0].failed(errStop)
				}
				g.Extensions()
			}
		})
	}
	clients.Wait()
	if n := len(first.sink.Messages()) + len(second.sink.Messages()); n != 80 {
		t.Errorf("%d messages", n)
	}
}
