package hashfamily

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// MaxWeightedBits and MaxWeightedK are the largest m and k of a weighted family:
// its hashes have 32 bits.
const (
	MaxWeightedBits = 1 << 32
	MaxWeightedK    = 64
)

// weightedName is the name of the weighted family, and the word before the colon for
// other seeds.
const weightedName = "weighted"

// weightedSeeds are the default seeds.
var weightedSeeds = []uint32{5, 7, 11, 13, 31, 37, 61}

// Weighted is the weighted family: one multiplicative hash under k seeds. For seed
// i, called s, over m = 2^j bits:
//
//	h = 0; for each byte c: h = s·h + c (mod 2^32); index i = h mod m
//
// Source: a Bloom filter in Java tutorials, a BitSet of 2<<24 bits with the seeds
// 5, 7, 11, 13, 31, 37 and 61; they name no author. The hash is that of Java's
// String.hashCode with another multiplier than 31. (Some copies have h += s·h + c,
// which multiplies by s+1.)
//
// Strong: short, without a table or constant to get wrong; from m = 256 on a change
// of the last byte changes every index.
//
// Weak, besides being easy to collide on purpose (it is linear in the bytes):
//
//   - Small seeds do not reach high bits: a key of n bytes stays below
//     256·sⁿ/(s-1). The 456,976 keys of four lower-case letters have 3,901 hashes
//     under the seed 5, 10,001 under 7, 36,601 under 11, 59,501 under 13; from 31
//     on each key has its own.
//   - Adding 1 to a byte and subtracting s from the next one cancel out anywhere in
//     a key: "af" and "ba" collide under the seed 5.
//   - Seeds that are equal modulo 2^j have indices that are equal modulo 2^j. All
//     seven are odd, so all seven indices of a key are odd, or all even; 5, 13, 37
//     and 61 share three bits, 5 and 37 share five.
//   - An even seed forgets: after n more bytes, at least the lowest n bits no
//     longer depend on a byte.
//   - Leading zero bytes of a key change nothing.
//
// It is immutable.
type Weighted struct {
	shape
	mask   uint32 // m-1
	seeds  []uint32
	groups [][groupSize]uint32 // the seeds in groups; the last one is padded with 0
}

// groupSize is the number of seeds that [Weighted.AppendIndices] computes in one
// pass over the key. Each step waits for the product of the step before; several
// independent chains keep the multiplier busy.
const groupSize = 4

// NewWeighted returns the weighted family over m bits, a power of two up to
// [MaxWeightedBits], with an index function for each seed; without seeds it has 5,
// 7, 11, 13, 31, 37 and 61. There may be up to [MaxWeightedK] seeds, all different
// and not 0.
func NewWeighted(m uint64, seeds ...uint32) (*Weighted, error) {
	if len(seeds) == 0 {
		seeds = weightedSeeds
	}
	if err := checkSeeds(seeds); err != nil {
		return nil, err
	}
	shape, err := newShape(nameWeighted(seeds), m, len(seeds), MaxWeightedBits, MaxWeightedK)
	if err != nil {
		return nil, err
	}
	if m&(m-1) != 0 {
		above := uint64(1) << bits.Len64(m)
		return nil, fmt.Errorf("hash family %s: %d bits are not a power of two: use %d or %d", shape.name, m, above/2, above)
	}
	w := &Weighted{shape: shape, mask: uint32(m - 1), seeds: slices.Clone(seeds)}
	for chunk := range slices.Chunk(seeds, groupSize) {
		var group [groupSize]uint32
		copy(group[:], chunk)
		w.groups = append(w.groups, group)
	}
	return w, nil
}

// checkSeeds checks the seeds of a weighted family.
func checkSeeds(seeds []uint32) error {
	if _, err := newShape(weightedName, 1, len(seeds), 1, MaxWeightedK); err != nil {
		return err
	}
	for i, seed := range seeds {
		if seed == 0 {
			return fmt.Errorf("hash family weighted: seed 0: use 1 to %d", uint32(math.MaxUint32))
		}
		if slices.Contains(seeds[:i], seed) {
			return fmt.Errorf("hash family weighted: seed %d is repeated: name each at most once", seed)
		}
	}
	return nil
}

// nameWeighted returns the name of the weighted family of these seeds.
func nameWeighted(seeds []uint32) string {
	if slices.Equal(seeds, weightedSeeds) {
		return weightedName
	}
	var words []string
	for _, seed := range seeds {
		words = append(words, strconv.FormatUint(uint64(seed), 10))
	}
	return weightedName + ":" + strings.Join(words, ",")
}

// parseWeighted parses the seeds after "weighted:", if there are any.
func parseWeighted(arguments string) (Spec, error) {
	seeds := weightedSeeds
	if arguments != "" {
		seeds = nil
		for word := range strings.SplitSeq(arguments, ",") {
			seed, err := strconv.ParseUint(word, 10, 32)
			if err != nil {
				return Spec{}, fmt.Errorf("hash family weighted: seed %q: use decimal numbers from 1 to %d separated by commas, as in %q",
					word, uint32(math.MaxUint32), "weighted:5,7,11")
			}
			seeds = append(seeds, uint32(seed))
		}
	}
	if err := checkSeeds(seeds); err != nil {
		return Spec{}, err
	}
	return Spec{
		resembling: true,
		name:       nameWeighted(seeds), k: len(seeds), maxK: len(seeds), maxM: MaxWeightedBits, powerOfTwo: true,
		build: func(p Params) (Family, error) { return made(NewWeighted(p.M, seeds...)) },
	}, nil
}

// HashName returns the name of hash i, for 0 ≤ i < K, such as "seed-31".
func (w *Weighted) HashName(i int) string { return fmt.Sprint("seed-", w.seeds[i]) }

// Index returns the hash of key under seed i, modulo M.
func (w *Weighted) Index(i int, key []byte) uint64 {
	seed, h := w.seeds[i], uint32(0)
	for _, c := range key {
		h = seed*h + uint32(c)
	}
	return uint64(h & w.mask)
}

// AppendIndices appends the indices of key under all seeds, in order.
func (w *Weighted) AppendIndices(dst []uint64, key []byte) []uint64 {
	missing := len(w.seeds)
	for i := range w.groups {
		hashes := weighFour(&w.groups[i], key)
		for _, h := range hashes[:min(missing, groupSize)] {
			dst = append(dst, uint64(h&w.mask))
		}
		missing -= groupSize
	}
	return dst
}

// weighFour returns the hashes of key under four seeds.
func weighFour(seeds *[groupSize]uint32, key []byte) [groupSize]uint32 {
	s0, s1, s2, s3 := seeds[0], seeds[1], seeds[2], seeds[3]
	var h0, h1, h2, h3 uint32
	for _, c := range key {
		h0 = s0*h0 + uint32(c)
		h1 = s1*h1 + uint32(c)
		h2 = s2*h2 + uint32(c)
		h3 = s3*h3 + uint32(c)
	}
	return [groupSize]uint32{h0, h1, h2, h3}
}
