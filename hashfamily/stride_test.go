package hashfamily

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainStride is double hashing written with big integers.
func plainStride(h halves, m uint64, k int) []uint64 {
	size := new(big.Int).SetUint64(m)
	a := new(big.Int).Mod(new(big.Int).SetUint64(h.h1), size)
	b := new(big.Int).Mod(new(big.Int).SetUint64(h.h2), size)
	if m&(m-1) == 0 {
		b.SetBit(b, 0, 1)
	}
	var indices []uint64
	for i := range k {
		index := new(big.Int).Mul(big.NewInt(int64(i)), b)
		index.Add(index, a)
		indices = append(indices, index.Mod(index, size).Uint64())
	}
	return indices
}

// checkStride compares both ways to step with big integers.
func checkStride(tb testing.TB, h halves, m uint64, k int) {
	tb.Helper()
	s, err := newStride(doubleName, m, k, MaxDoubleBits, MaxDoubleK)
	if err != nil {
		tb.Fatal(err)
	}
	want := plainStride(h, m, k)
	if got := s.appendIndices(nil, h); !slices.Equal(got, want) {
		tb.Errorf("m=%d, %x: %d, want %d", m, h, got, want)
	}
	for i := range k {
		if got := s.index(i, h); got != want[i] {
			tb.Errorf("m=%d, %x: index %d is %d, want %d", m, h, i, got, want[i])
		}
	}
}

func TestStride(t *testing.T) {
	edges := []uint64{0, 1, 2, 1<<32 - 1, 1 << 58, 1<<58 - 1, 1<<64 - 2, 1<<64 - 1}
	for _, h1 := range edges {
		for _, h2 := range edges {
			for _, m := range []uint64{1, 2, 3, 7, 8, 1 << 32, MaxDoubleBits - 1, MaxDoubleBits} {
				checkStride(t, halves{h1, h2}, m, MaxDoubleK)
			}
		}
	}
	r := rand.New(rand.NewPCG(13, 14))
	for range 2_000 {
		checkStride(t, halves{r.Uint64(), r.Uint64()}, 1+r.Uint64N(MaxDoubleBits>>r.UintN(58)), MaxDoubleK)
	}
}

func FuzzStride(f *testing.F) {
	f.Add(uint64(5), uint64(0), uint64(10))
	f.Add(^uint64(0), ^uint64(0), uint64(MaxDoubleBits))
	f.Add(^uint64(0), ^uint64(0), uint64(MaxDoubleBits-1))
	f.Fuzz(func(t *testing.T, h1, h2, m uint64) {
		checkStride(t, halves{h1, h2}, (m-1)%MaxDoubleBits+1, MaxDoubleK)
	})
}

// TestStrideInPowersOfTwo holds that an odd step leads to k different indices.
func TestStrideInPowersOfTwo(t *testing.T) {
	for _, name := range []string{"double", "double:murmur3", "seeded"} {
		for _, m := range []uint64{16, 64, 1 << 20} {
			family := makeFamily(t, name, m, 15)
			eachRandomKey(func(key []byte) {
				indices := family.AppendIndices(nil, key)
				slices.Sort(indices)
				if n := len(slices.Compact(indices)); n != 15 {
					t.Fatalf("%s, m=%d: %q has %d different indices of 15", name, m, key, n)
				}
			})
		}
	}
}

// TestStrideElsewhere holds that for other m some keys have fewer, as the type's
// comment tells: among 12 bits every twelfth key steps by 0, and every twelfth
// by 6.
func TestStrideElsewhere(t *testing.T) {
	const keys = 12_000
	family := makeFamily(t, "double", 12, 5)
	counts := map[int]int{}
	for i := range keys {
		indices := family.AppendIndices(nil, fmt.Appendf(nil, "user%d@example.com", i))
		slices.Sort(indices)
		counts[len(slices.Compact(indices))]++
	}
	// Steps 4 and 8 lead to three indices, 3 and 9 to four, the six others to five.
	for n, of12 := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 5: 6} {
		if want := keys / 12 * of12; counts[n] < want*85/100 || counts[n] > want*115/100 {
			t.Errorf("%d of %d keys have %d different indices, want about %d", counts[n], keys, n, want)
		}
	}
}

// TestStrideOfFewBits holds that two keys have all indices in common at a rate of
// 4/m²: m·m/2 pairs of a start and an odd step, each with one other that goes the
// same way backwards.
func TestStrideOfFewBits(t *testing.T) {
	const keys, m = 2_000, 64
	family := makeFamily(t, "double", m, 5)
	seen := map[[5]uint64]int{}
	same := 0
	for i := range keys {
		indices := family.AppendIndices(nil, fmt.Appendf(nil, "user%d@example.com", i))
		slices.Sort(indices)
		same += seen[[5]uint64(indices)]
		seen[[5]uint64(indices)]++
	}
	if want := keys * (keys - 1) / 2 * 4 / (m * m); same < want*85/100 || same > want*115/100 {
		t.Errorf("%d pairs of %d keys have the same indices, want about %d", same, keys, want)
	}
}

// TestSeededIsUnevenNearItsLimit holds what the type's comment says of m = 3·2^30.
func TestSeededIsUnevenNearItsLimit(t *testing.T) {
	const keys, m = 10_000, 3 << 30
	family := makeFamily(t, "seeded", m, 1)
	low := 0
	for i := range keys {
		if family.Index(0, fmt.Appendf(nil, "user%d@example.com", i)) < m/3 {
			low++
		}
	}
	if low < keys*48/100 || low > keys*52/100 {
		t.Errorf("%d of %d keys are in the lowest third, want half", low, keys)
	}
}

// TestSecretKey holds that the key decides the indices, that it is copied, and
// that only its length is checked.
func TestSecretKey(t *testing.T) {
	key := slices.Clone(publicKey)
	family, err := NewDouble(1<<58, 7, key)
	if err != nil {
		t.Fatal(err)
	}
	address := []byte("spam@example.com")
	before := family.AppendIndices(nil, address)
	key[31] ^= 1
	if after := family.AppendIndices(nil, address); !slices.Equal(before, after) {
		t.Errorf("indices are %d, and %d when the caller's key has changed", before, after)
	}
	other, err := NewDouble(1<<58, 7, key)
	if err != nil {
		t.Fatal(err)
	}
	if got := other.AppendIndices(nil, address); got[0] == before[0] || got[1] == before[1] {
		t.Errorf("indices are %d, and %d under a key that differs in a bit", before, got)
	}
	for _, length := range []int{0, 16, 31, 33, 64} {
		family, err := NewDouble(8, 7, make([]byte, length))
		if err == nil || family != nil || !strings.Contains(err.Error(), "32 random bytes") {
			t.Errorf("a key of %d bytes: %v, %v; want an error that says 32 random bytes", length, family, err)
		}
	}
}
