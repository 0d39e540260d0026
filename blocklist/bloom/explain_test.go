package bloom

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"spamgate/hashfamily"
)

// What Explain says of a key is what MayContain says, for keys that are there and
// others, and its bits are those that Add sets.
func TestExplainFilter(t *testing.T) {
	for _, family := range allFamilies(t, 1<<12) {
		f, err := New(family)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			f.Add(fmt.Appendf(nil, "user%d@example.com", i))
		}
		maybes := 0
		for i := range 2000 {
			key := fmt.Appendf(nil, "user%d@example.com", i)
			e := f.Explain(key)
			if e.Maybe != f.MayContain(key) {
				t.Fatalf("%s: %q: %+v, and MayContain says %v", family.Name(), key, e, !e.Maybe)
			}
			if e.Maybe {
				maybes++
			}
			var indices []uint64
			for _, p := range e.Probes {
				indices = append(indices, p.Index)
				if p.Set != (f.bits[p.Index/8]>>(p.Index%8)&1 == 1) || p.Hash == "" {
					t.Fatalf("%s: %q: %+v", family.Name(), key, p)
				}
			}
			if !slices.Equal(indices, family.AppendIndices(nil, key)) {
				t.Fatalf("%s: %q: %v", family.Name(), key, indices)
			}
		}
		if maybes < 300 {
			t.Errorf("%s: %d of 300 were found", family.Name(), maybes)
		}
	}
}

// The classic hashes are shown whole, and by name.
func TestExplainValues(t *testing.T) {
	f := newClassic(t, 1<<20)
	key := []byte("bulk.example")
	for i, p := range f.Explain(key).Probes {
		h := hashfamily.Hashes()[i]
		if sum := uint64(h.Sum(key)); p.Hash != h.Name || p.Value != sum || p.Index != sum%(1<<20) {
			t.Errorf("%+v, want %s = %d", p, h.Name, sum)
		}
	}
	double, err := hashfamily.NewDoubleMurmur3(1<<20, 3)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 3 {
		names = append(names, hashName(double, i))
	}
	if want := []string{"a", "a+b", "a+2b"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestExplainSharded(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{1, 5} {
		s, err := NewSharded(family, shards)
		if err != nil {
			t.Fatal(err)
		}
		keys := makeKeys("k", 1000)
		if err := s.Fill(t.Context(), 1000, scanOf(keys)); err != nil {
			t.Fatal(err)
		}
		parts := map[int]bool{}
		for _, k := range append(keys, makeKeys("other", 3000)...) {
			e := s.Explain(k.hash, k.key)
			parts[e.Part] = true
			if e.Maybe != s.MayContain(k.hash, k.key) || e.Parts != shards || e.Part >= shards {
				t.Fatalf("%d shards, %q: %+v, and MayContain says %v", shards, k.key, e, !e.Maybe)
			}
		}
		if len(parts) != shards {
			t.Errorf("%d shards: only %v were asked", shards, parts)
		}
	}
}

func TestExplainFuse(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, width := range []int{8, 16, 32} {
		for _, n := range []int{0, 1, 1000} {
			keys := makeKeys("k", n)
			f := newFuse(t, width, keys)
			hashes := make([]uint64, 0, n+50_000)
			for _, k := range keys {
				hashes = append(hashes, k.hash)
			}
			for range 50_000 {
				hashes = append(hashes, r.Uint64())
			}
			for _, hash := range hashes {
				e := f.Explain(hash)
				if e.Maybe != f.MayContain(hash) || e.Parts != 1 || n > 0 && len(e.Places) != 3 {
					t.Fatalf("%d bits, %d keys, %x: %+v, and MayContain says %v", width, n, hash, e, !e.Maybe)
				}
				found := uint64(0)
				for _, p := range e.Places {
					found ^= p.Value
				}
				if n > 0 && (found == e.Fingerprint) != e.Maybe {
					t.Fatalf("%d bits, %d keys, %x: %+v", width, n, hash, e)
				}
			}
		}
	}
}
