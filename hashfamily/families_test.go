package hashfamily

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// familyNames has each kind of family at least once.
var familyNames = []string{
	"classic", "classic9", "classic:AP,RS", "weighted", "weighted:3", "weighted:2,1,4294967295,1000003,8,9",
	"digest", "double", "double:murmur3", "double:plain", "seeded", "seeded:42",
}

// publicKey is a key for tests: the bytes from 0 to 31.
var publicKey = func() []byte {
	key := make([]byte, KeySize)
	for i := range key {
		key[i] = byte(i)
	}
	return key
}()

// makeFamily makes a family that must be.
func makeFamily(tb testing.TB, name string, m uint64, k int) Family {
	tb.Helper()
	spec, err := ParseSpec(name)
	if err != nil {
		tb.Fatal(err)
	}
	family, err := spec.New(Params{M: m, K: k, Key: publicKey})
	if err != nil {
		tb.Fatal(err)
	}
	return family
}

// checkFamily holds what must be so for every family and key: as many indices
// as K, all of them below M, the same every time and the same by Index; and the
// name parses again to itself.
func checkFamily(tb testing.TB, f Family, key []byte) {
	tb.Helper()
	before := slices.Clone(key)
	indices := f.AppendIndices([]uint64{7}, key)
	if indices[0] != 7 || len(indices) != f.K()+1 {
		tb.Fatalf("%s, m=%d: AppendIndices after 7 is %d, K is %d", f.Name(), f.M(), indices, f.K())
	}
	if again := f.AppendIndices([]uint64{7}, key); !slices.Equal(again, indices) {
		tb.Errorf("%s, m=%d: indices of %q are %d, then %d", f.Name(), f.M(), key, indices, again)
	}
	for i, index := range indices[1:] {
		if got := f.Index(i, key); got != index || index >= f.M() {
			tb.Errorf("%s, m=%d, %q: Index %d is %d, by AppendIndices %d", f.Name(), f.M(), key, i, got, index)
		}
	}
	if !slices.Equal(key, before) {
		tb.Errorf("%s: key %q became %q", f.Name(), before, key)
	}
	if spec, err := ParseSpec(f.Name()); err != nil || spec.String() != f.Name() {
		tb.Errorf("%q parses to %q, %v", f.Name(), spec, err)
	}
}

func TestFamilies(t *testing.T) {
	keys := [][]byte{nil, {}, {0}, []byte("a"), []byte("spam@example.com"), []byte("\xff\xfe\x80")}
	r := rand.New(rand.NewPCG(5, 6))
	for length := range 300 {
		if length%7 == 0 {
			keys = append(keys, randomBytes(r, length))
		}
	}
	for _, name := range familyNames {
		spec, err := ParseSpec(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []uint64{1, 2, 3, 7, 8, 1000, 65537, 1 << 25, 1 << 28, 1<<32 - 1, 1 << 32, 1<<40 + 1, 1 << 58, 1 << 63} {
			if m > spec.MaxM() {
				continue
			}
			if m, err = spec.FitM(m); err != nil {
				t.Fatal(err)
			}
			for _, k := range []int{1, spec.MaxK()} {
				if spec.K() != 0 {
					k = 0
				}
				family := makeFamily(t, name, m, k)
				if family.Name() != name || family.M() != m || k != 0 && family.K() != k || k == 0 && family.K() != spec.K() {
					t.Fatalf("%s, m=%d, k=%d: made %s, %d, %d", name, m, k, family.Name(), family.M(), family.K())
				}
				for _, key := range keys {
					checkFamily(t, family, key)
				}
			}
		}
	}
}

// randomBytes is n bytes of any value.
func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// FuzzFamilies checks any key, under any family that the text names, over any
// number of bits.
func FuzzFamilies(f *testing.F) {
	for i, name := range familyNames {
		f.Add(name, []byte("spam@example.com"), uint64(1)<<28, i)
	}
	f.Add("digest", []byte(""), uint64(1), 64)
	f.Add("digest", []byte(strings.Repeat("long", 200)), uint64(1)<<63, 64)
	f.Add("double", []byte("\xff\x00"), uint64(1)<<58, 64)
	f.Add("seeded:18446744073709551615", []byte("m\xc3\xbcller@b\xc3\xbccher.example"), uint64(1)<<32-1, 15)
	f.Add("weighted:4294967295,2", []byte("a"), uint64(3), 0)
	f.Add("weighted:,", []byte("a"), uint64(3), 0)
	f.Fuzz(func(t *testing.T, name string, key []byte, m uint64, k int) {
		spec, err := ParseSpec(name)
		if err != nil {
			return
		}
		if m, err = spec.FitM(m); err != nil {
			return
		}
		family, err := spec.New(Params{M: m, K: k, Key: publicKey})
		if free := spec.K() == 0; free && (k < 0 || k > spec.MaxK()) || !free && k != 0 && k != spec.K() {
			if err == nil {
				t.Fatalf("%s took %d hashes", name, k)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s, m=%d, k=%d: %v", name, m, k, err)
		}
		if family.M() != m || family.Name() != spec.String() {
			t.Fatalf("%s, m=%d: made %s, %d", name, m, family.Name(), family.M())
		}
		checkFamily(t, family, key)
	})
}

// TestFamiliesDoNotAllocate calls each type directly, with a key on the stack:
// through the interface the compiler must take it that the key escapes.
func TestFamiliesDoNotAllocate(t *testing.T) {
	const m = 1 << 28
	weighted := makeFamily(t, "weighted", m, 0).(*Weighted)
	digest := makeFamily(t, "digest", MaxDigestBits, MaxDigestK).(*Digest)
	double := makeFamily(t, "double", m, 7).(*Double)
	murmur := makeFamily(t, "double:murmur3", m, 7).(*Double)
	seeded := makeFamily(t, "seeded", m, 7).(*Seeded)
	room := make([]uint64, 0, MaxDigestK)
	text := strings.Repeat("a", digestKeyRoom)
	for name, f := range map[string]func(){
		"weighted": func() {
			var buf [digestKeyRoom]byte
			key := append(buf[:0], text...)
			weighted.Index(6, key)
			weighted.AppendIndices(room, key)
		},
		"digest": func() {
			var buf [digestKeyRoom]byte
			key := append(buf[:0], text...)
			digest.Index(MaxDigestK-1, key)
			digest.AppendIndices(room, key)
		},
		"double": func() {
			var buf [digestKeyRoom]byte
			key := append(buf[:0], text...)
			double.Index(6, key)
			double.AppendIndices(room, key)
		},
		"double:murmur3": func() {
			var buf [digestKeyRoom]byte
			key := append(buf[:0], text...)
			murmur.Index(6, key)
			murmur.AppendIndices(room, key)
		},
		"seeded": func() {
			var buf [digestKeyRoom]byte
			key := append(buf[:0], text...)
			seeded.Index(6, key)
			seeded.AppendIndices(room, key)
		},
	} {
		if allocs := testing.AllocsPerRun(100, f); allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", name, allocs)
		}
	}
}
