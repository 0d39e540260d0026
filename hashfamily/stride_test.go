package hashfamily

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// bigStride is triple hashing written with big integers.
func bigStride(h parts, m uint64, k int) []uint64 {
	size := new(big.Int).SetUint64(m)
	scaled := func(h uint64) *big.Int {
		v := new(big.Int).Mul(new(big.Int).SetUint64(h), size)
		return v.Rsh(v, 64)
	}
	a, b, c := scaled(h.h1), scaled(h.h2), scaled(h.h3)
	var indices []uint64
	for i := range int64(k) {
		index := new(big.Int).Mul(big.NewInt(i), b)
		index.Add(index, a)
		index.Add(index, new(big.Int).Mul(big.NewInt(i*(i-1)/2), c))
		indices = append(indices, index.Mod(index, size).Uint64())
	}
	return indices
}

// checkStride compares both ways to step with big integers.
func checkStride(tb testing.TB, h parts, m uint64, k int) {
	tb.Helper()
	s, err := newStride(doubleName, m, k, MaxDoubleBits, MaxDoubleK)
	if err != nil {
		tb.Fatal(err)
	}
	want := bigStride(h, m, k)
	a, b, c := s.start(h)
	if got := s.appendIndices(nil, a, b, c); !slices.Equal(got, want) {
		tb.Errorf("m=%d, %x: %d, want %d", m, h, got, want)
	}
	for i := range k {
		if got := s.index(i, a, b, c); got != want[i] {
			tb.Errorf("m=%d, %x: index %d is %d, want %d", m, h, i, got, want[i])
		}
	}
}

func TestStride(t *testing.T) {
	edges := []uint64{0, 1, 1<<32 - 1, 1 << 58, 1<<64 - 2, 1<<64 - 1}
	for _, h1 := range edges {
		for _, h2 := range edges {
			for _, h3 := range edges {
				for _, m := range []uint64{1, 2, 3, 8, 1 << 32, MaxDoubleBits - 1, MaxDoubleBits} {
					checkStride(t, parts{h1, h2, h3}, m, 12)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(13, 14))
	for range 500 {
		checkStride(t, parts{r.Uint64(), r.Uint64(), r.Uint64()}, 1+r.Uint64N(MaxDoubleBits>>r.UintN(58)), MaxDoubleK)
	}
}

func FuzzStride(f *testing.F) {
	f.Add(uint64(5), uint64(0), uint64(7), uint64(10))
	f.Add(^uint64(0), ^uint64(0), ^uint64(0), uint64(MaxDoubleBits))
	f.Add(^uint64(0), ^uint64(0), ^uint64(0), uint64(MaxDoubleBits-1))
	f.Fuzz(func(t *testing.T, h1, h2, h3, m uint64) {
		checkStride(t, parts{h1, h2, h3}, (m-1)%MaxDoubleBits+1, MaxDoubleK)
	})
}

// TestStrideHasNoFloor measures small filters with a low rate, in which double
// hashing is many times worse than the formula and triple hashing is not. The
// formula is itself a little too low for 1,000 keys: 1.04e-6 is exact.
func TestStrideHasNoFloor(t *testing.T) {
	const filters, n, k = 10, 1000, 20
	for _, c := range []struct {
		name        string
		m           uint64
		least, most float64 // the rate, as a multiple of the formula's
	}{
		{"double:plain", 28_756, 20, 80},
		{"double", 28_756, 0, 2.5},
		{"double:murmur3", 28_756, 0, 2.5},
		{"double:plain", 32_768, 20, 120},
		{"double", 32_768, 0, 2.5},
		{"seeded", 28_756, 0, 2.5}, // 15 hashes
	} {
		spec, err := ParseSpec(c.name)
		if err != nil {
			t.Fatal(err)
		}
		k := min(k, spec.MaxK())
		hits, asked := 0, 0
		for filter := range filters {
			secret := slices.Clone(publicKey)
			secret[0] = byte(filter)
			family, err := spec.New(Params{M: c.m, K: k, Key: secret})
			if err != nil {
				t.Fatal(err)
			}
			hits += falsePositives(family, n, noFloorProbes, uint64(filter))
			asked += noFloorProbes
		}
		formula := math.Pow(-math.Expm1(-float64(k)*n/float64(c.m)), float64(k))
		ratio := float64(hits) / float64(asked) / formula
		t.Logf("%s, m=%d, k=%d: %d of %d, %.2f times the formula's %.3g", c.name, c.m, k, hits, asked, ratio, formula)
		// Four hits may be chance.
		if slack := 4 / (formula * float64(asked)); ratio < c.least || ratio > c.most+slack {
			t.Errorf("%s, m=%d: %.2f times the formula's rate, want %v to %v", c.name, c.m, ratio, c.least, c.most)
		}
	}
}

// noFloorProbes is how many absent keys each filter is asked for.
const noFloorProbes = 100_000

// falsePositives fills a bitmap with n keys and returns how many of the others pass.
func falsePositives(family Family, n, others int, seed uint64) (hits int) {
	set := make([]bool, family.M())
	var indices []uint64
	key := make([]byte, 16)
	locate := func(i int) []uint64 {
		binary.LittleEndian.PutUint64(key, seed)
		binary.LittleEndian.PutUint64(key[8:], uint64(i))
		indices = family.AppendIndices(indices[:0], key)
		return indices
	}
	for i := range n {
		for _, index := range locate(i) {
			set[index] = true
		}
	}
	for i := range others {
		if !slices.ContainsFunc(locate(n+i), func(index uint64) bool { return !set[index] }) {
			hits++
		}
	}
	return hits
}

// TestPlainStrideInPowersOfTwo holds that an odd step leads to k different indices.
func TestPlainStrideInPowersOfTwo(t *testing.T) {
	for _, m := range []uint64{16, 64, 1 << 20} {
		family := makeFamily(t, "double:plain", m, 15)
		eachRandomKey(func(key []byte) {
			indices := family.AppendIndices(nil, key)
			slices.Sort(indices)
			if n := len(slices.Compact(indices)); n != 15 {
				t.Fatalf("m=%d: %q has %d different indices of 15", m, key, n)
			}
		})
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

// TestExcess measures small filters of ways that random numbers choose: their rate is
// not above fill^k and the excess.
func TestExcess(t *testing.T) {
	for _, c := range []struct {
		m    uint64
		n, k int
		over float64 // the least rate, as a multiple of fill^k
	}{{33, 1, 20, 1000}, {303, 10, 20, 40}, {2890, 100, 20, 2}, {98, 10, 7, 1}} {
		spec, err := ParseSpec(murmurName)
		if err != nil {
			t.Fatal(err)
		}
		hits, byFill, most := 0, 0.0, 0.0
		const filters, probes = 40, 100_000
		for filter := range filters {
			family := makeFamily(t, murmurName, c.m, c.k)
			seed := uint64(filter)<<32 | c.m
			hits += falsePositives(family, c.n, probes, seed)
			fill := fillOf(family, c.n, seed)
			byFill += math.Pow(fill, float64(c.k)) / filters
			most += (math.Pow(fill, float64(c.k)) + spec.Excess(c.m, c.k, fill)) / filters
		}
		rate := float64(hits) / filters / probes
		t.Logf("m=%d, n=%d, k=%d: %.3g (%d), fill^k %.3g, at most %.3g", c.m, c.n, c.k, rate, hits, byFill, most)
		if slack := 3 * math.Sqrt(float64(hits)) / filters / probes; rate-slack > most || rate+slack < c.over*byFill {
			t.Errorf("m=%d, n=%d, k=%d: a rate of %.3g, want %.3g to %.3g", c.m, c.n, c.k, rate, c.over*byFill, most)
		}
	}
}

// fillOf returns the fill ratio that the n keys of falsePositives leave.
func fillOf(family Family, n int, seed uint64) float64 {
	set := map[uint64]bool{}
	key := make([]byte, 16)
	for i := range n {
		binary.LittleEndian.PutUint64(key, seed)
		binary.LittleEndian.PutUint64(key[8:], uint64(i))
		for _, index := range family.AppendIndices(nil, key) {
			set[index] = true
		}
	}
	return float64(len(set)) / float64(family.M())
}
