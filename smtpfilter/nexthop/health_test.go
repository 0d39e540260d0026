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
)

// testClock is a clock that stands still until it is moved.
type testClock struct {
	mu     sync.Mutex
	time   time.Time
	timers []*testTimer
}

type testTimer struct {
	instant time.Time
	f       func()
}

func newTestClock() *testClock { return &testClock{time: time.Unix(1e9, 0)} }

// clock is the clock without a random part.
func (c *testClock) clock() clock {
	return clock{now: c.now, after: c.after, part: func() float64 { return 0 }}
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *testClock) after(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &testTimer{c.time.Add(d), f}
	c.timers = append(c.timers, timer)
	return func() bool { return c.remove(timer) }
}

func (c *testClock) remove(timer *testTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.timers, timer)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	return true
}

// advance moves the time, and runs what is due then.
func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	c.time = c.time.Add(d)
	var due []*testTimer
	for _, timer := range c.timers {
		if !timer.instant.After(c.time) {
			due = append(due, timer)
		}
	}
	c.mu.Unlock()
	for _, timer := range due {
		if c.remove(timer) {
			timer.f()
		}
	}
}

func (c *testClock) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// probed is a Target with a probe of the test's.
type probed struct {
	Target
	probe func(context.Context) error
}

func (p probed) Probe(ctx context.Context) error { return p.probe(ctx) }

// unprobed hides a Target's probe, if it has one.
type unprobed struct{ Target }

// testGroup makes a group whose log is the returned buffer.
func testGroup(t *testing.T, config GroupConfig, members ...Target) (*Group, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	g, err := NewGroup(members, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g, &log
}

func TestBackoff(t *testing.T) {
	clock := newTestClock()
	config := GroupConfig{BackoffMax: 10 * time.Second, clock: clock.clock()}
	g, log := testGroup(t, config, unprobed{&fakeTarget{name: "a"}})
	m := g.members[0]
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		m.failed(errStop)
		m.failed(errStop) // while it is left alone: no longer for that
		if got := m.retryAt.Sub(clock.now()); got != want*time.Second || m.up() {
			t.Errorf("left alone for %v, not %v s", got, want)
		}
		if clock.advance(want*time.Second - 1); m.ready() {
			t.Errorf("ready before %v s", want)
		}
		if clock.advance(1); !m.ready() {
			t.Errorf("not ready after %v s", want)
		}
	}
	m.succeeded()
	m.succeeded()
	m.failed(errStop)
	if got := m.retryAt.Sub(clock.now()); got != time.Second {
		t.Errorf("left alone for %v after a success", got)
	}
	if down, back := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); down != 2 || back != 1 {
		t.Errorf("log:\n%s", log)
	}
	m.group.config.clock.part = func() float64 { return 1 }
	if got := m.backoff(); got != 750*time.Millisecond {
		t.Errorf("shortest: %v", got)
	}
}

// TestProbe: a member is probed at once, and while it is down; no client is sent
// to it in between.
func TestProbe(t *testing.T) {
	clock := newTestClock()
	err := errStop
	probes := 0
	a := probed{&fakeTarget{name: "a"}, func(context.Context) error { probes++; return err }}
	b := &fakeTarget{name: "b"}
	g, log := testGroup(t, GroupConfig{clock: clock.clock()}, a, b)
	check := func(wantProbes int, wantUp bool, first string) {
		t.Helper()
		if m := g.members[0]; probes != wantProbes || m.up() != wantUp || g.order()[0].String() != first {
			t.Errorf("%d probes, up %v, first %s", probes, m.up(), g.order()[0])
		}
	}
	check(0, true, "a")
	clock.advance(0)
	check(1, false, "b")
	clock.advance(time.Second - 1)
	check(1, false, "b")
	clock.advance(1)
	check(2, false, "b")
	clock.advance(time.Second)
	check(2, false, "b")
	err = nil
	clock.advance(time.Second)
	check(3, true, "a")
	clock.advance(time.Hour)
	check(3, true, "a")
	if !strings.Contains(log.String(), `msg="next hop is down" next_hop=a error="stop it" retry_in=1s`) ||
		!strings.Contains(log.String(), `msg="next hop is back" next_hop=a`) {
		t.Errorf("log:\n%s", log)
	}
	// A client's success makes the probe unnecessary.
	g.members[0].failed(errStop)
	g.members[0].succeeded()
	if n := clock.waiting(); n != 0 {
		t.Errorf("%d probes are waiting", n)
	}
}

// TestCloseEndsProbes: one that is waiting and one that is under way.
func TestCloseEndsProbes(t *testing.T) {
	checkGoroutines(t)
	probing := make(chan struct{})
	slow := probed{&fakeTarget{name: "a"}, func(ctx context.Context) error {
		close(probing)
		<-ctx.Done()
		return ctx.Err()
	}}
	down := probed{&fakeTarget{name: "b"}, func(context.Context) error { return errors.New("no") }}
	g, log := testGroup(t, GroupConfig{BackoffMin: time.Hour, BackoffMax: time.Hour}, slow, down)
	<-probing
	waitFor(t, "the failure", func() bool { return !g.members[1].up() })
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	g.members[1].failed(errStop)
	if strings.Contains(log.String(), "next_hop=a") {
		t.Errorf("log:\n%s", log)
	}
	if g.Close() != nil {
		t.Error("second close")
	}
}
