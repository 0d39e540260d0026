package accounts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// try makes an attempt that fails, and returns how long to wait; 0 if it was allowed.
func try(t *testing.T, l *limits, name, address string, known bool) time.Duration {
	t.Helper()
	_, err := l.begin(name, network(address), known)
	var limited *LimitedError
	if errors.As(err, &limited) {
		return limited.Wait
	}
	must(t, err)
	return 0
}

// allowed counts the attempts until one is not allowed.
func allowed(t *testing.T, l *limits, name func(int) string, address func(int) string, known bool) int {
	t.Helper()
	for i := range 10_000 {
		if try(t, l, name(i), address(i), known) > 0 {
			return i
		}
	}
	t.Fatal("no limit")
	return 0
}

func TestLimits(t *testing.T) {
	same := func(s string) func(int) string { return func(int) string { return s } }
	each := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i/200, i%200) }
	}
	for _, c := range []struct {
		what          string
		name, address func(int) string
		known         bool
		burst         int
		every         time.Duration
	}{
		{"one name, one address", same("ann"), same("192.0.2.1"), false, 5, 20 * time.Second},
		{"one name, many addresses", same("ann"), each("192.0.%d.%d"), false, 20, 20 * time.Second},
		{"many names, one address", each("u%d.%d"), same("192.0.2.1"), false, 20, 10 * time.Second},
		{"many names, many addresses", each("u%d.%d"), each("192.0.%d.%d"), false, 40, time.Second},
		{"many names, one network", each("u%d.%d"), each("2001:db8::%d:%d"), false, 20, 10 * time.Second},
		{"one name where it is known", same("ann"), same("192.0.2.1"), true, 10, 10 * time.Second},
		{"many names where they are known", each("u%d.%d"), each("192.0.%d.%d"), true, 40, 500 * time.Millisecond},
	} {
		clock := newClock()
		l := newLimits(clock.now)
		if got := allowed(t, l, c.name, c.address, c.known); got != c.burst {
			t.Errorf("%s: %d attempts, want %d", c.what, got, c.burst)
		}
		if wait := try(t, l, c.name(9999), c.address(9999), c.known); wait != c.every {
			t.Errorf("%s: wait %v, want %v", c.what, wait, c.every)
		}
		clock.move(c.every)
		if got := allowed(t, l, c.name, c.address, c.known); got != 1 {
			t.Errorf("%s: %d attempts after the wait", c.what, got)
		}
		clock.move(time.Hour)
		if got := allowed(t, l, c.name, c.address, c.known); got != c.burst {
			t.Errorf("%s: %d attempts after an hour", c.what, got)
		}
	}
}

// An attack of many addresses on a name does not keep its owner out where the name has
// logged in before.
func TestOwnerGetsIn(t *testing.T) {
	s, _, c := stores(t)
	must(t, s.AddUser("admin", password, Admin, nil))
	login(t, s, "admin")
	for i := range 1000 {
		_, err := s.limits.begin("admin", fmt.Sprintf("198.51.%d.%d", i/200, i%200), false)
		_ = err // most are refused
		_, _ = s.limits.begin(fmt.Sprintf("name%d", i), "198.51.100.1", false)
	}
	_, err := s.Login(context.Background(), "admin", password, "203.0.113.9")
	var limited *LimitedError
	if !errors.As(err, &limited) || limited.Wait > 20*time.Second {
		t.Errorf("from a new address: %v", err)
	}
	if _, err := s.Login(context.Background(), "admin", password, "192.0.2.1"); err != nil {
		t.Errorf("where he is known: %v", err)
	}
	c.move(20 * time.Second)
	if _, err := s.Login(context.Background(), "admin", password, "203.0.113.9"); err != nil {
		t.Errorf("from a new address after the attack: %v", err)
	}
}

// Successful logins use nothing up.
func TestSuccessIsFree(t *testing.T) {
	clock := newClock()
	l := newLimits(clock.now)
	for i := range 1000 {
		a, err := l.begin("ann", "192.0.2.1", i%2 == 0)
		must(t, err)
		a.giveBack()
	}
}

// A long attack uses little memory.
func TestLimitsMemory(t *testing.T) {
	clock := newClock()
	l := newLimits(clock.now)
	most := 0
	for i := range 100_000 {
		clock.move(100 * time.Millisecond)
		_, _ = l.begin(fmt.Sprintf("name%d", i), fmt.Sprintf("address%d", i), i%2 == 0)
		most = max(most, len(l.buckets))
	}
	if most > 1000 {
		t.Errorf("%d buckets", most)
	}
}

func TestNetwork(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8:0:0:ffff::1": "2001:db8::/64",
		"fe80::1%eth0": "fe80::/64", "": "", "unix": "unix", string(make([]byte, 1000)): string(make([]byte, maxFrom)),
	} {
		if got := network(from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}

// Hashes are computed one at a time, few callers wait, and none beyond its context.
func TestHasher(t *testing.T) {
	h := hasher{busy: make(chan struct{}, 1)}
	must(t, h.enter(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	results := make(chan error, maxWaiting)
	for range maxWaiting {
		waiting.Go(func() { results <- h.enter(ctx) })
	}
	for h.waiting.Load() < maxWaiting {
		time.Sleep(time.Millisecond)
	}
	wantErr(t, "one more", h.enter(context.Background()), ErrBusy)
	h.leave()
	wantErr(t, "the next", <-results, nil)
	cancel()
	waiting.Wait()
	for range maxWaiting - 1 {
		wantErr(t, "who does not wait any longer", <-results, context.Canceled)
	}
	h.leave()
	must(t, h.enter(context.Background()))
}

// BenchmarkLogin measures what an attempt costs.
func BenchmarkLogin(b *testing.B) {
	h := newHash(password, usualCost)
	b.ReportAllocs()
	for b.Loop() {
		if !h.matches(password) {
			b.Fatal("it is the password")
		}
	}
}
