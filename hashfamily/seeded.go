package hashfamily

import (
	"fmt"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"
)

// MaxSeededBits and MaxSeededK are the largest m and k of a seeded family. The halves
// of its hash have 32 bits, and the table of [SeededSize] ends at that k.
const (
	MaxSeededBits = 1 << 32
	MaxSeededK    = 15
)

// seededName is the name of the seeded family with seed 0, and the word before the
// colon for other seeds.
const seededName = "seeded"

// Seeded is the seeded family: the halves of one 64-bit hash with a seed, XXH3-64,
// make all indices.
//
//	h1 = the high, h2 = the low 32 bits of the hash
//	a = h1 mod m, b = h2 mod m; if m is a power of two, b's lowest bit is set
//	index i = (a + i·b) mod m
//
// It has the three parameters of the filters in analytic databases: size, hashes
// and seed. [SeededSize] has their table.
//
// Source: ClickHouse's index of the kind bloom_filter, which uses such a table (and
// two CityHash64 with seeds, and adds i² to each index); Kirsch and Mitzenmacher
// (ESA 2006) for the indices; Yann Collet's xxHash for XXH3.
//
// Strong: the fastest of the families, even for any keys; filters with different
// seeds have different false positives.
//
// Weak: the seed is not a secret key, since XXH3 is not a cryptographic hash: it
// does not resist an attacker who chooses keys. Halves of 32 bits reach at most
// 2^32 bits. If m is not a power of two they favour the lower indices by less than
// one part in 2^32/m; for m = 3·2^30 the lowest third gets half of the indices. All
// k indices depend on two numbers, as in [Double].
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
		name: nameSeeded(seed), maxK: MaxSeededK, maxM: MaxSeededBits,
		build: func(p Params) (Family, error) { return made(NewSeeded(p.M, p.K, seed)) },
	}, nil
}

// Index returns index i of key.
func (s *Seeded) Index(i int, key []byte) uint64 { return s.index(i, s.sum(key)) }

// AppendIndices appends all K indices of key, in order, from one hash.
func (s *Seeded) AppendIndices(dst []uint64, key []byte) []uint64 {
	return s.appendIndices(dst, s.sum(key))
}

// Start returns the first index of key and the step to each next one; see
// [Double.Start].
func (s *Seeded) Start(key []byte) (a, b uint64) { return s.start(s.sum(key)) }

// sum returns the two halves of the hash of key.
func (s *Seeded) sum(key []byte) halves {
	h := xxh3.HashSeed(key, s.seed)
	return halves{h >> 32, h & math.MaxUint32}
}
