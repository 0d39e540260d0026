package bloom

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

func newSieve(tb testing.TB, family hashfamily.Family, n int, warn func(float64)) *Sieve {
	tb.Helper()
	s, err := NewSieve(family, n, warn)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestSieve(t *testing.T) {
	for _, c := range []struct {
		name         string
		push         []string
		wantNew      []bool
		wantInOrder  []string
		popAfterEach bool
	}{
		{"nothing", nil, nil, nil, false},
		{"once each", []string{"a", "b", "c"}, []bool{true, true, true}, []string{"a", "b", "c"}, false},
		{"again", []string{"a", "b", "a", "a", "b"}, []bool{true, true, false, false, false}, []string{"a", "b"}, false},
		{"the empty key", []string{"", "x", ""}, []bool{true, true, false}, []string{"", "x"}, false},
		{"popped is not new", []string{"a", "a", "b", "a"}, []bool{true, false, true, false}, []string{"a", "b"}, true},
	} {
		family, err := hashfamily.NewSeeded(1<<16, 10, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := newSieve(t, family, 100, nil)
		var got []string
		pop := func() {
			if key, ok := s.Pop(); ok {
				got = append(got, string(key))
			}
		}
		for i, key := range c.push {
			if isNew := s.Push([]byte(key)); isNew != c.wantNew[i] {
				t.Errorf("%s: push %d of %q is %v, want %v", c.name, i, key, isNew, c.wantNew[i])
			}
			if c.popAfterEach {
				pop()
			}
		}
		for s.Len() > 0 {
			pop()
		}
		if key, ok := s.Pop(); ok || key != nil {
			t.Errorf("%s: an empty queue gives %q, %v", c.name, key, ok)
		}
		if !slices.Equal(got, c.wantInOrder) {
			t.Errorf("%s: popped %q, want %q", c.name, got, c.wantInOrder)
		}
	}
}

// TestSieveAgainstPlain pushes and pops at random, beside a map of keys and a
// slice. A key that the sieve calls new is so, one that was pushed is never new,
// and a new key is lost only where the filter says that it may be there.
func TestSieveAgainstPlain(t *testing.T) {
	for _, m := range []uint64{61, 4096} {
		for _, family := range allFamilies(t, m) {
			s := newSieve(t, family, 100, nil)
			r := rand.New(rand.NewPCG(m, uint64(family.K())))
			seen := make(map[string]bool)
			var queue []string
			room := make([]byte, 0, 64) // one for all keys: Push must have copied
			for range 600 {
				if r.IntN(3) == 0 {
					key, ok := s.Pop()
					if ok != (len(queue) > 0) || ok && string(key) != queue[0] {
						t.Fatalf("%s, m=%d: Pop gives %q, %v; the queue is %q", family.Name(), m, key, ok, queue)
					}
					queue = queue[min(1, len(queue)):]
				} else {
					key := fmt.Append(room, "user", r.IntN(300))
					lost := mayContainPlain(s.Filter(), key)
					if isNew := s.Push(key); isNew == lost || isNew && seen[string(key)] {
						t.Fatalf("%s, m=%d: Push(%q) is %v; seen before: %v", family.Name(), m, key, isNew, seen[string(key)])
					}
					seen[string(key)] = true
					if !lost {
						queue = append(queue, string(key))
					}
				}
				if s.Len() != len(queue) {
					t.Fatalf("%s, m=%d: Len is %d, want %d", family.Name(), m, s.Len(), len(queue))
				}
			}
		}
	}
}

// TestSieveLosesFew counts the new keys that are lost, in a sieve that is as full
// as it was made for.
func TestSieveLosesFew(t *testing.T) {
	const n, m, k = 100_000, 600_000, 4
	family, err := hashfamily.NewSeeded(m, k, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := newSieve(t, family, n, nil)
	for _, key := range disposable.Domains()[:n] {
		s.Push(key)
	}
	lost := float64(n-s.Len()) / n
	t.Logf("lost %.4f of the keys, the last with a probability of %.4f", lost, FPR(m, k, n))
	if lost == 0 || lost > FPR(m, k, n) {
		t.Errorf("lost %.4f of the keys, want more than none and less than %.4f", lost, FPR(m, k, n))
	}
	if got := s.EstimatedKeys(); got < 0.99*n || got > 1.01*n {
		t.Errorf("%.0f keys by estimate, want %d within 1%%", got, n)
	}
}

func TestSieveWarnsOnce(t *testing.T) {
	family, err := hashfamily.NewSeeded(1<<20, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	var warnings []float64
	pushed, warnedAt := 0, 0
	s := newSieve(t, family, 1000, func(estimate float64) {
		warnings = append(warnings, estimate)
		warnedAt = pushed
	})
	for _, key := range disposable.Domains()[:5000] {
		pushed++
		s.Push(key)
		s.Push(key)
	}
	if len(warnings) != 1 || warnings[0] <= 1000.4 || warnedAt < 990 || warnedAt > 1010 {
		t.Errorf("warnings %v after %d keys, want one of just above 1000 at about 1000", warnings, warnedAt)
	}
}

func TestNewSieveRefuses(t *testing.T) {
	for _, c := range []struct {
		family hashfamily.Family
		n      int
	}{
		{strided{k: 3, m: 64}, 0},
		{strided{k: 3, m: 64}, -1},
		{nil, 10},
		{strided{k: 0, m: 64}, 10},
	} {
		if s, err := NewSieve(c.family, c.n, nil); err == nil || s != nil {
			t.Errorf("%v, n=%d: NewSieve gives %v, %v; want an error", c.family, c.n, s, err)
		}
	}
}

// TestSieveReleasesMemory runs much through a queue that stays short, and then
// takes all but one key out of a queue that was long.
func TestSieveReleasesMemory(t *testing.T) {
	s := newSieve(t, strided{k: 4, m: 1 << 24}, 100_000, nil)
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	key := make([]byte, 1000)
	push := func(serial int) {
		copy(key, fmt.Sprint("serial ", serial))
		s.Push(key)
	}
	push(0)
	before := heap()
	for serial := range 50_000 {
		push(serial + 1)
		s.Pop()
	}
	after := heap()
	if s.Len() != 1 {
		t.Fatalf("%d keys wait, want 1: choose a larger m", s.Len())
	}
	if after > before+10<<20 {
		t.Errorf("the heap grew from %d to %d bytes while 50 MB went through a queue of one", before, after)
	}
	for serial := range 20_000 {
		push(serial + 60_000)
	}
	for s.Len() > 1 {
		s.Pop()
	}
	if after := heap(); after > before+10<<20 {
		t.Errorf("the heap grew from %d to %d bytes when a queue of 20 MB was emptied but for one key", before, after)
	}
	runtime.KeepAlive(s)
}

// TestSieveWarnsOnceThatPushes: who is warned may push, and is not warned again.
func TestSieveWarnsOnceThatPushes(t *testing.T) {
	family, err := hashfamily.NewSeeded(1<<16, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	var s *Sieve
	warnings := 0
	s = newSieve(t, family, 2, func(float64) {
		if warnings++; warnings > 1 {
			return
		}
		if !s.Push([]byte("pushed by the warning")) {
			t.Error("a new key is not new while the warning is given")
		}
	})
	for i := range 6 {
		s.Push(fmt.Append(nil, "key ", i))
	}
	if warnings != 1 || s.Len() != 7 {
		t.Errorf("%d warnings and %d keys, want 1 and 7", warnings, s.Len())
	}
}
