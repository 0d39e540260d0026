package hashfamily

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainWeighted is the weighted family as its definition is written.
func plainWeighted(seeds []uint32, m uint64, key []byte) []uint64 {
	var indices []uint64
	for _, seed := range seeds {
		h := uint32(0)
		for _, c := range key {
			h = seed*h + uint32(c)
		}
		indices = append(indices, uint64(h)%m)
	}
	return indices
}

// TestWeightedAgainstPlain tries every number of seeds around the size of a
// group.
func TestWeightedAgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for k := 1; k <= 3*groupSize+1; k++ {
		var seeds []uint32
		for len(seeds) < k {
			if seed := r.Uint32() >> r.UintN(32); seed != 0 && !slices.Contains(seeds, seed) {
				seeds = append(seeds, seed)
			}
		}
		for _, m := range []uint64{1, 2, 8, 1 << 25, 1 << 31, 1 << 32} {
			family, err := NewWeighted(m, seeds...)
			if err != nil {
				t.Fatal(err)
			}
			for length := range 100 {
				key := randomBytes(r, length)
				expect(t, family, key, plainWeighted(seeds, m, key))
			}
		}
	}
}

// FuzzWeighted compares the passes over several seeds with the definition.
func FuzzWeighted(f *testing.F) {
	f.Add([]byte("spam@example.com"), uint32(5), uint8(7), uint8(25))
	f.Add([]byte(""), uint32(1), uint8(1), uint8(0))
	f.Add([]byte("\xff\xfe\x80"), uint32(0xFFFFFFFE), uint8(9), uint8(32))
	f.Fuzz(func(t *testing.T, key []byte, first uint32, count, log uint8) {
		var seeds []uint32
		for i := range uint32(count)%MaxWeightedK + 1 {
			if seed := first + i; seed != 0 {
				seeds = append(seeds, seed)
			}
		}
		if len(seeds) == 0 {
			return
		}
		m := uint64(1) << (log % 33)
		family, err := NewWeighted(m, seeds...)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, family, key, plainWeighted(seeds, m, key))
	})
}

// TestWeightedKeepsItsSeeds holds that the caller may go on using the slice.
func TestWeightedKeepsItsSeeds(t *testing.T) {
	seeds := []uint32{5, 7}
	family, err := NewWeighted(1<<25, seeds...)
	if err != nil {
		t.Fatal(err)
	}
	seeds[0] = 9
	expect(t, family, []byte("abc"), []uint64{3014, 5538})
}

func TestWeightedHashName(t *testing.T) {
	f, err := NewWeighted(1<<10, 9, 4294967295)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := f.HashName(0), f.HashName(1); a != "seed-9" || b != "seed-4294967295" {
		t.Errorf("%s and %s", a, b)
	}
}

func TestWeightedRefuses(t *testing.T) {
	many := make([]uint32, MaxWeightedK+1)
	for i := range many {
		many[i] = uint32(i + 1)
	}
	for _, c := range []struct {
		m     uint64
		seeds []uint32
		says  string
	}{
		{0, nil, "use 1 to 4294967296"},
		{1<<32 + 1, nil, "use 1 to 4294967296"},
		{3, nil, "use 2 or 4"},
		{1000, nil, "use 512 or 1024"},
		{1<<32 - 1, nil, "use 2147483648 or 4294967296"},
		{8, []uint32{0}, "seed 0"},
		{8, []uint32{5, 7, 5}, "seed 5 is repeated"},
		{8, many, "use 1 to 64"},
	} {
		if family, err := NewWeighted(c.m, c.seeds...); err == nil || family != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("NewWeighted(%d, %d): %v, %v; want an error that says %q", c.m, c.seeds, family, err, c.says)
		}
	}
}

// TestWeightedShortKeys counts the hashes of all keys of four lower-case letters.
// Under a seed s < 26 they are all the numbers between the least and the largest,
// 25·(s⁴-1)/(s-1) apart; under one from 26 on the key's letters are its digits.
func TestWeightedShortKeys(t *testing.T) {
	family, err := NewWeighted(MaxWeightedBits)
	if err != nil {
		t.Fatal(err)
	}
	for i, seed := range weightedSeeds {
		hashes := map[uint64]bool{}
		for n := range 26 * 26 * 26 * 26 {
			key := [4]byte{'a' + byte(n%26), 'a' + byte(n/26%26), 'a' + byte(n/26/26%26), 'a' + byte(n/26/26/26)}
			hashes[family.Index(i, key[:])] = true
		}
		want := map[uint32]int{5: 3_901, 7: 10_001, 11: 36_601, 13: 59_501, 31: 456_976, 37: 456_976, 61: 456_976}[seed]
		if len(hashes) != want {
			t.Errorf("seed %d: %d hashes of four letters, want %d", seed, len(hashes), want)
		}
	}
}

// TestWeightedSharedBits holds that seeds which are equal modulo 2^j yield
// indices that are.
func TestWeightedSharedBits(t *testing.T) {
	family, err := NewWeighted(1 << 25)
	if err != nil {
		t.Fatal(err)
	}
	eachRandomKey(func(key []byte) {
		pos := map[uint32]uint64{}
		for i, index := range family.AppendIndices(nil, key) {
			pos[weightedSeeds[i]] = index
		}
		for _, seed := range weightedSeeds {
			if pos[seed]%2 != pos[5]%2 {
				t.Fatalf("%q: %v are not all odd or all even", key, pos)
			}
		}
		for _, seed := range []uint32{13, 37, 61} {
			if pos[seed]%8 != pos[5]%8 {
				t.Fatalf("%q: under %d it is %d mod 8, under 5 %d", key, seed, pos[seed]%8, pos[5]%8)
			}
		}
		if pos[37]%32 != pos[5]%32 {
			t.Fatalf("%q: under 37 it is %d mod 32, under 5 %d", key, pos[37]%32, pos[5]%32)
		}
	})
}

// TestWeightedCollides holds the examples that the type's comment gives.
func TestWeightedCollides(t *testing.T) {
	family, err := NewWeighted(MaxWeightedBits, 5, 2, 6)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		seed int
		a, b string
	}{
		{0, "af", "ba"},
		{0, "user.af@example.com", "user.ba@example.com"},
		{0, "\x00\x00example.com", "example.com"},
		{1, "a" + strings.Repeat("x", 32), "b" + strings.Repeat("x", 32)},
		{2, "a" + strings.Repeat("x", 32), "b" + strings.Repeat("x", 32)},
	} {
		if a, b := family.Index(c.seed, []byte(c.a)), family.Index(c.seed, []byte(c.b)); a != b {
			t.Errorf("seed %d: %q has %d, %q has %d; want them equal", family.seeds[c.seed], c.a, a, c.b, b)
		}
	}
	eachRandomKey(func(key []byte) {
		if len(key) == 0 {
			return
		}
		other := bytes.Clone(key)
		other[len(other)-1] ^= 1
		for i := range family.K() {
			if family.Index(i, key) == family.Index(i, other) {
				t.Fatalf("%q and %q have one index", key, other)
			}
		}
	})
}
