package bloom

import (
	"math/rand/v2"
	"testing"

	"spamgate/hashfamily"
)

// lookPlain is what a Look says, by the indices that the family gives one by one.
func lookPlain(f *Filter, key []byte) byte {
	var places []int // of the index functions
	switch family := f.family.(type) {
	case *hashfamily.Classic:
		if f.staged {
			for _, leader := range leaders {
				for i := range family.K() {
					if family.HashName(i) == leader {
						places = append(places, i)
					}
				}
			}
		}
		if f.setBits < f.m/sparse && len(places) > 0 {
			places = places[:1]
		}
	case *hashfamily.Seeded, *hashfamily.Double:
		places = []int{0, 1, 2}[:min(3, f.k)]
	}
	all := byte(1)
	for _, p := range places {
		all &= f.bit(f.family.Index(p, key))
	}
	return all
}

// checkLook compares a Look with its plain twin, and with MayContain, which is
// never to be true where the Look rules the key out.
func checkLook(t *testing.T, f *Filter, key []byte) (maybe byte) {
	t.Helper()
	l := f.Look(key)
	maybe = l.Maybe()
	if want := lookPlain(f, key); maybe != want {
		t.Fatalf("%s, m=%d: the look at %q says %d, want %d", f.family.Name(), f.m, key, maybe, want)
	}
	if maybe == 0 && f.MayContain(key) {
		t.Fatalf("%s, m=%d: the look rules out %q, which the filter may contain", f.family.Name(), f.m, key)
	}
	return maybe
}

// TestLook looks for keys in filters of every family, while they get from empty to
// full.
func TestLook(t *testing.T) {
	for _, m := range []uint64{1, 61, 64, 5000, 8192} {
		for _, family := range allFamilies(t, m) {
			f, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(m, uint64(family.K())))
			answers := map[byte]int{}
			for answers[1] < 1000 {
				for range 20 {
					answers[checkLook(t, f, randomKey(r))]++
				}
				key := randomKey(r)
				f.Add(key)
				if checkLook(t, f, key) == 0 {
					t.Fatalf("%s, m=%d: the look rules out %q, which was added", family.Name(), m, key)
				}
			}
			switch family.(type) {
			case *hashfamily.Seeded, *hashfamily.Double:
				if answers[0] < 20 {
					t.Errorf("%s, m=%d: answers %v: too few keys were ruled out", family.Name(), m, answers)
				}
			case *hashfamily.Classic:
				if f.staged && answers[0] < 20 {
					t.Errorf("%s, m=%d: answers %v: too few keys were ruled out", family.Name(), m, answers)
				}
			}
		}
	}
}

// TestShardedLook looks for keys in the shard that MayContain asks.
func TestShardedLook(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	s := newShards(t, family, 3)
	r := rand.New(rand.NewPCG(3, 4))
	ruledOut := 0
	for range 3000 {
		hash, key := r.Uint64(), randomKey(r)
		l := s.Look(hash, key)
		if l.Maybe() == 0 {
			if ruledOut++; s.MayContain(hash, key) {
				t.Fatalf("the look rules out %q, which the filter may contain", key)
			}
		}
		s.shards[s.shard(hash)].Add(key)
		if l = s.Look(hash, key); l.Maybe() == 0 {
			t.Fatalf("the look rules out %q, which was added", key)
		}
	}
	if ruledOut < 100 {
		t.Errorf("%d keys ruled out: the test tests less than it should", ruledOut)
	}
}
