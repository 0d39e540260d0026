package hashfamily

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/zeebo/xxh3"
)

// MaxSeededBits and MaxSeededK are the largest m and k of a seeded family. Its hash
// has 64 bits, half of them for each of two numbers, and the table of [SeededSize]
// ends at that k.
const (
	MaxSeededBits = 1 << 32
	MaxSeededK    = 15
)

// seededName is the name of the seeded family with seed 0, and the word before the
// colon for other seeds.
const seededName = "seeded"

// Seeded is the seeded family: one 64-bit hash h with a seed, XXH3-64, makes all
// indices.
//
//	h1 = h, h2 = h with its halves swapped, h3 = h·0x9E3779B97F4A7C15 mod 2^64
//	a = ⌊h1·m/2^64⌋, b = ⌊h2·m/2^64⌋, c = ⌊h3·m/2^64⌋
//	index i = (a + i·b + i·(i-1)/2·c) mod m
//
// It has the three parameters of the filters in analytic databases: size, hashes
// and seed. [SeededSize] has their table.
//
// Source: ClickHouse's index of the kind bloom_filter, which uses such a table (and
// two CityHash64 with seeds, and adds i² to each index); Dillinger and Manolios
// (FMCAD 2004) for the indices, see [Double]; Yann Collet's xxHash for XXH3; Knuth,
// "The Art of Computer Programming", volume 3, section 6.4, for the factor.
//
// Strong: the fastest of the families, even for any keys; filters with different
// seeds have different false positives.
//
// Weak: the seed is not a secret key, since XXH3 is not a cryptographic hash: it
// does not resist an attacker who chooses keys. All k indices depend on 64 bits.
//
// It is immutable.
type Seeded struct {
	stride
	seed uint64
}

// NewSeeded returns the seeded family with k index functions, from 1 to
// [MaxSeededK], over m bits, from 1 to [MaxSeededBits].
func NewSeeded(m uint64, k int, seed uint64) (*Seeded, error) {
	s, err := newStride(nameSeeded(seed), m, k, MaxSeededBits, MaxSeededK)
	if err != nil {
		return nil, err
	}
	return &Seeded{s, seed}, nil
}

// nameSeeded returns the name of the seeded family with this seed.
func nameSeeded(seed uint64) string {
	if seed == 0 {
		return seededName
	}
	return seededName + ":" + strconv.FormatUint(seed, 10)
}

// parseSeeded parses the seed after "seeded:", if there is one.
func parseSeeded(arguments string) (Spec, error) {
	seed := uint64(0)
	if arguments != "" {
		var err error
		if seed, err = strconv.ParseUint(arguments, 10, 64); err != nil {
			return Spec{}, fmt.Errorf("hash family seeded: seed %q: use a decimal number from 0 to %d", arguments, uint64(math.MaxUint64))
		}
	}
	return Spec{
		name: nameSeeded(seed), maxK: MaxSeededK, maxM: MaxSeededBits, stride: true,
		build: func(p Params) (Family, error) { return made(NewSeeded(p.M, p.K, seed)) },
	}, nil
}

// Index returns index i of key.
func (s *Seeded) Index(i int, key []byte) uint64 {
	a, b, c := s.Start(key)
	return s.index(i, a, b, c)
}

// AppendIndices appends all K indices of key, in order, from one hash.
func (s *Seeded) AppendIndices(dst []uint64, key []byte) []uint64 {
	a, b, c := s.Start(key)
	return s.appendIndices(dst, a, b, c)
}

// golden is 2^64 divided by the golden ratio, rounded to an odd number. A product
// with it carries every bit of the hash into the high bits.
const golden = 0x9E3779B97F4A7C15

// Start returns the first index of key, the step to the second, and what each
// further step is longer; see [Double.Start].
func (s *Seeded) Start(key []byte) (a, b, c uint64) {
	h := xxh3.HashSeed(key, s.seed)
	return s.start(parts{h, bits.RotateLeft64(h, 32), h * golden})
}
