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
	pos := place{}
	if known {
		pos = place{Name: name, Network: network(address)}
	}
	_, err := l.begin(name, network(address), pos)
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
		_, err := s.limits.begin("admin", fmt.Sprintf("198.51.%d.%d", i/200, i%200), place{})
		_ = err // most are refused
		_, _ = s.limits.begin(fmt.Sprintf("name%d", i), "198.51.100.1", place{})
	}
	_, err := s.Login(context.Background(), "admin", password, Origin{Address: "203.0.113.9"})
	var limited *LimitedError
	if !errors.As(err, &limited) || limited.Wait > 20*time.Second {
		t.Errorf("from a new address: %v", err)
	}
	if _, err := s.Login(context.Background(), "admin", password, Origin{Address: "192.0.2.1"}); err != nil {
		t.Errorf("where he is known: %v", err)
	}
	c.move(20 * time.Second)
	if _, err := s.Login(context.Background(), "admin", password, Origin{Address: "203.0.113.9"}); err != nil {
		t.Errorf("from a new address after the attack: %v", err)
	}
}

// An attacker at the owner's own address, such as that of a proxy, does not keep the owner out
// of the browser where he has logged in before. No other account's browser helps the attacker.
func TestOwnerGetsInBesideTheAttacker(t *testing.T) {
	s, other, _ := stores(t)
	must(t, s.AddUser("admin", password, Admin, nil))
	must(t, s.AddUser("eve", password, Viewer, nil))
	const shared = "127.0.0.1"
	admin, err := s.Login(context.Background(), "admin", password, Origin{Address: shared})
	must(t, err)
	eve, err := s.Login(context.Background(), "eve", password, Origin{Address: shared})
	must(t, err)
	guesses := 0
	for range 200 {
		_, err := s.Login(context.Background(), "admin", "a wrong password", Origin{shared, eve.Browser})
		if errors.Is(err, ErrWrong) {
			guesses++
		}
	}
	if guesses != 10 {
		t.Errorf("%d guesses of the attacker, want those of a known address", guesses)
	}
	_, err = s.Login(context.Background(), "admin", password, Origin{Address: shared})
	var limited *LimitedError
	if !errors.As(err, &limited) {
		t.Errorf("another browser at this address: %v", err)
	}
	again, err := other.Login(context.Background(), "admin", password, Origin{"203.0.113.9", admin.Browser})
	if err != nil {
		t.Fatalf("the browser of the owner: %v", err)
	}
	for i := range 20 { // the old secret is worth nothing, and the new one has a limit, too
		_, err = s.Login(context.Background(), "admin", "a wrong password", Origin{shared, admin.Browser})
		if !errors.As(err, &limited) {
			t.Fatalf("with the old secret: %v", err)
		}
		_, err = s.Login(context.Background(), "admin", "a wrong password", Origin{shared, again.Browser})
		if errors.Is(err, ErrWrong) != (i < 10) {
			t.Fatalf("guess %d with the secret: %v", i, err)
		}
	}
}

// Names that cannot be names are limited as others are.
func TestInvalidNamesAreLimited(t *testing.T) {
	s, _, _ := stores(t)
	wrong := 0
	for i := range 100 {
		_, err := s.Login(context.Background(), fmt.Sprintf("not a name %d", i), password, Origin{Address: "192.0.2.1"})
		if errors.Is(err, ErrWrong) {
			wrong++
		}
	}
	if want := (Attempts{Wrong: 5, Limited: 95}); wrong != 5 || s.Attempts() != want {
		t.Errorf("%d were tried, %+v, want %+v", wrong, s.Attempts(), want)
	}
}

// Successful logins use nothing up.
func TestSuccessIsFree(t *testing.T) {
	clock := newClock()
	l := newLimits(clock.now)
	for i := range 1000 {
		a, err := l.begin("ann", "192.0.2.1", []place{{}, {Name: "ann", Network: "192.0.2.1"}, {Name: "ann", Browser: "1"}}[i%3])
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
		name, network, pos := fmt.Sprintf("name%d", i), fmt.Sprintf("address%d", i), place{}
		if i%2 == 0 {
			pos = place{Name: name, Network: network}
		}
		_, _ = l.begin(name, network, pos)
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
