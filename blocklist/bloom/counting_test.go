package bloom

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

func newCounting(tb testing.TB, family hashfamily.Family, counterBits int) *Counting {
	tb.Helper()
	c, err := NewCounting(family, counterBits)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestRemoveMembers adds keys of a small stock, some of them often, and removes
// what is there, never more.
func TestRemoveMembers(t *testing.T) {
	for _, counterBits := range []int{4, 8, 16} {
		for _, m := range []uint64{1, 61, 4096} {
			for _, family := range allFamilies(t, m) {
				removeMembers(t, family, counterBits)
			}
		}
	}
}

func removeMembers(t *testing.T, family hashfamily.Family, counterBits int) {
	t.Helper()
	c, want := newCounting(t, family, counterBits), newModel(family, counterBits)
	r := rand.New(rand.NewPCG(family.M(), uint64(counterBits)))
	var members [][]byte
	for step := range 400 {
		if len(members) == 0 || r.IntN(5) < 3 {
			key := fmt.Append(nil, "user", r.IntN(60), "@example.com")
			c.Add(key)
			want.change(key, 1)
			members = append(members, key)
		} else {
			pos := r.IntN(len(members))
			if !c.Remove(members[pos]) {
				t.Fatalf("%s, m=%d: Remove refuses %q, which is there", family.Name(), family.M(), members[pos])
			}
			want.change(members[pos], -1)
			members = slices.Delete(members, pos, pos+1)
		}
		if step%50 == 0 {
			want.check(t, c)
		}
	}
	want.check(t, c)
	for _, key := range members {
		c.Remove(key)
		want.change(key, -1)
	}
	want.check(t, c)
	if got := c.Filter().SetBits(); got != c.Saturated() {
		t.Errorf("%s, m=%d: all keys removed, %d bits are set and %d counters saturated; want the same", family.Name(), family.M(), got, c.Saturated())
	}
}

// TestCountingIsAFilter: as long as nothing is removed the bitmap is a Filter's.
func TestCountingIsAFilter(t *testing.T) {
	keys := disposable.Domains()[:3000]
	for _, m := range []uint64{1, 5000, 1 << 16} {
		for _, family := range allFamilies(t, m) {
			f, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			f.AddAll(keys)
			for _, counterBits := range []int{4, 8, 16} {
				c := newCounting(t, family, counterBits)
				c.AddAll(keys)
				if !bytes.Equal(c.Filter().bits, f.bits) || c.Filter().SetBits() != f.SetBits() {
					t.Errorf("%s, m=%d, counters of %d bits: the bitmap is not the filter's", family.Name(), m, counterBits)
				}
			}
		}
	}
}

// TestRemoveLeavesTheRest: as long as no counter is saturated the bitmap is, after
// removals, that of a Filter of the keys that stayed.
func TestRemoveLeavesTheRest(t *testing.T) {
	keys := disposable.Domains()[:6000]
	gone, stay := keys[:4500], keys[4500:]
	for _, family := range allFamilies(t, 1<<18) {
		c := newCounting(t, family, 16)
		c.AddAll(keys)
		for _, key := range gone {
			if !c.Remove(key) {
				t.Fatalf("%s: Remove refuses %q, which is there", family.Name(), key)
			}
		}
		f, err := New(family)
		if err != nil {
			t.Fatal(err)
		}
		f.AddAll(stay)
		if c.Saturated() != 0 || !bytes.Equal(c.Filter().bits, f.bits) {
			t.Errorf("%s: %d saturated; the bitmap is not that of the keys that stayed", family.Name(), c.Saturated())
		}
	}
}

func TestRemoveRefusesAbsent(t *testing.T) {
	for _, family := range allFamilies(t, 4096) {
		c, want := newCounting(t, family, DefaultCounterBits), newModel(family, DefaultCounterBits)
		for _, key := range disposable.Domains()[:50] {
			c.Add(key)
			want.change(key, 1)
		}
		refused := 0
		for _, key := range disposable.Domains()[1000:2000] {
			if !c.MayContain(key) {
				refused++
				if c.Remove(key) {
					t.Errorf("%s: Remove(%q) = true, and MayContain was false", family.Name(), key)
				}
			}
		}
		want.check(t, c)
		if refused == 0 && family.K() < 60 { // 64 indices a key fill the filter
			t.Errorf("%s: no key was certainly absent", family.Name())
		}
	}
}

// TestRemovingAFalsePositiveDoesDamage is why Remove is for known members only:
// MayContain says yes to a key that was never added, Remove believes it, and a
// key that was added is denied.
func TestRemovingAFalsePositiveDoesDamage(t *testing.T) {
	family, err := hashfamily.NewSeeded(1<<12, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := newCounting(t, family, DefaultCounterBits)
	members := disposable.Domains()[:500]
	c.AddAll(members)
	removed := 0
	for _, key := range disposable.Domains()[500:5000] {
		if c.MayContain(key) {
			if !c.Remove(key) {
				t.Fatalf("MayContain(%q) is true and Remove refuses it", key)
			}
			removed++
		}
	}
	denied := 0
	for _, key := range members {
		if !c.MayContain(key) {
			denied++
		}
	}
	t.Logf("%d false positives removed: %d of %d members are denied", removed, denied, len(members))
	if removed == 0 || denied == 0 {
		t.Errorf("%d false positives removed, %d members denied: the warning at Remove is wrong", removed, denied)
	}
}

// TestSaturation counts to the end and back: one below the largest value a key
// can be removed, from there on it stays.
func TestSaturation(t *testing.T) {
	key := []byte("spam@example.com")
	for _, counterBits := range []int{4, 8, 16} {
		family, err := hashfamily.NewClassic(1<<20, "PJW", "ELF", "RS")
		if err != nil {
			t.Fatal(err)
		}
		most := 1<<counterBits - 1
		for _, times := range []int{most - 1, most, most + 10} {
			c := newCounting(t, family, counterBits)
			for range times {
				c.Add(key)
			}
			wantSaturated := uint64(0)
			if times >= most {
				wantSaturated = 2 // PJW and ELF share a counter, and count once
			}
			if c.Saturated() != wantSaturated {
				t.Errorf("%d bits, added %d times: %d counters saturated, want %d", counterBits, times, c.Saturated(), wantSaturated)
			}
			for range times {
				if !c.Remove(key) {
					t.Fatalf("%d bits, added %d times: Remove refuses the key", counterBits, times)
				}
			}
			if got, want := c.MayContain(key), times >= most; got != want {
				t.Errorf("%d bits, added and removed %d times: MayContain is %v, want %v", counterBits, times, got, want)
			}
			if c.Saturated() != wantSaturated {
				t.Errorf("%d bits, removed %d times: %d counters saturated, want %d", counterBits, times, c.Saturated(), wantSaturated)
			}
		}
	}
}

// TestSaturationIsRare holds the probability that DefaultCounterBits promises.
func TestSaturationIsRare(t *testing.T) {
	probability := 0.0
	term := 0.5 // e^(-ln 2)
	for n := 1; n < 40; n++ {
		term *= math.Ln2 / float64(n)
		if n >= 1<<DefaultCounterBits-1 {
			probability += term
		}
	}
	if math.Abs(probability-1.6e-15) > 0.05e-15 {
		t.Errorf("probability %.3g, the documentation says 1.6e-15", probability)
	}
}

// TestCloneIsApart changes a filter and its clone side by side, which is also for
// the race detector.
func TestCloneIsApart(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	c := newCounting(t, family, DefaultCounterBits)
	clone := c.Clone()
	var wg sync.WaitGroup
	for _, counting := range []*Counting{c, clone} {
		wg.Go(func() {
			for _, key := range disposable.Domains()[:2000] {
				counting.Add(key)
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(c.counters.packed, clone.counters.packed) || !bytes.Equal(c.filter.bits, clone.filter.bits) {
		t.Error("the same keys in both, and they differ")
	}
}

func TestNewCountingRefuses(t *testing.T) {
	for _, c := range []struct {
		family      hashfamily.Family
		counterBits int
	}{
		{strided{k: 3, m: 64}, 0},
		{strided{k: 3, m: 64}, 5},
		{strided{k: 3, m: 64}, 32},
		{nil, 4},
		{strided{k: 3, m: MaxBits + 1}, 4},
	} {
		if got, err := NewCounting(c.family, c.counterBits); err == nil || got != nil {
			t.Errorf("%v, %d bits: NewCounting gives %v, %v; want an error", c.family, c.counterBits, got, err)
		}
	}
}

func BenchmarkCounting(b *testing.B) {
	family, err := hashfamily.NewClassic(ClassicBits)
	if err != nil {
		b.Fatal(err)
	}
	c := newCounting(b, family, DefaultCounterBits)
	keys := disposable.Domains()
	c.AddAll(keys)
	i := 0
	next := func() []byte {
		if i++; i == len(keys) {
			i = 0
		}
		return keys[i]
	}
	b.Run("AddRemove", func(b *testing.B) {
		for b.Loop() {
			key := next()
			c.Add(key)
			c.Remove(key)
		}
	})
	b.Run("Clone", func(b *testing.B) {
		for b.Loop() {
			c.Clone()
		}
	})
}
