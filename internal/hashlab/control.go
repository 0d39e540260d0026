package hashlab

import (
	"context"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/minio/highwayhash"
	"github.com/zeebo/xxh3"

	"spamgate/hashfamily"
)

// Names of the controls that stand in every table.
const (
	Ideal = "ideal"
	XXH3  = "xxh3"
)

// ideal is k independent functions with uniform values, as near as a program
// comes to them: a generator (PCG, 128 bits of state) is started anew for each
// key, from its HighwayHash-128 under a secret made from the seed, and yields
// a fresh draw for each index.
//
// That may stand for ideal hashes: HighwayHash is made to be a pseudo-random
// function, so that who doesn't know its secret can't tell the generators' starts
// from chance, whatever the keys have in common. Two keys share a start with
// probability 2^-128; and where they don't, equal indices are as rare as chance
// makes them, since PCG's output permutes all 128 bits of the state. No index is
// computed from another one (unlike double hashing, whose k indices are fixed by
// two of them).
//
// What is left of order is that the draws are of 64 bits: an index falls short
// of uniform by less than m/2^64.
type ideal struct {
	short, long [highwayhash.Size]byte // HighwayHash's keys
	twist       digest                 // added to each digest: other functions of the same keys
	m           uint64
	k           int
}

// digest is a key's HighwayHash-128 in two halves.
type digest struct{ high, low uint64 }

// newIdeal makes the control of ideal hashes: k functions over m bits, both at
// least 1. Another seed gives other functions.
func newIdeal(seed, m uint64, k int) *ideal {
	// Another stream of the seed than the laboratory's other draws.
	random := rand.NewPCG(seed, idealStream)
	f := &ideal{m: m, k: k}
	for _, key := range [][]byte{f.short[:], f.long[:]} {
		for i := 0; i < len(key); i += 8 {
			binary.LittleEndian.PutUint64(key[i:], random.Uint64())
		}
	}
	return f
}

const idealStream = 0x69_64_65_61_6C // "ideal"

// again is other functions by another seed, made from the same digests, so that
// many filters can each have their own and the keys are digested once: to digest
// them is the larger part of the work.
func (f *ideal) again(seed uint64) *ideal {
	random := rand.NewPCG(seed, idealStream)
	g := *f
	g.twist = digest{random.Uint64(), random.Uint64()}
	return &g
}

// digest digests a key. HighwayHash is faster over whole blocks of 32 bytes
// (BenchmarkIdeal), so keys of less than two blocks are filled up with zeros and
// their length: no two keys become one text. Longer ones are hashed as they are,
// under a key of their own: none is a filled up one's text.
func (f *ideal) digest(key []byte) digest {
	var sum [highwayhash.Size128]byte
	if len(key) < 64 {
		var text [64]byte
		copy(text[:], key)
		end := 32 + len(key)&32
		text[end-1] = byte(len(key))
		sum = highwayhash.Sum128(text[:end], f.short[:])
	} else {
		sum = highwayhash.Sum128(key, f.long[:])
	}
	return digest{binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:])}
}

// digests digests all keys.
func (f *ideal) digests(ctx context.Context, keys [][]byte) ([]digest, error) {
	all := make([]digest, len(keys))
	return all, inPieces(ctx, len(keys), func() func(i int) {
		return func(i int) { all[i] = f.digest(keys[i]) }
	})
}

// draws starts the generator of a digest. [mix] scatters what the twist has
// changed: starts that differ by the same number for all keys would leave it to
// the generator alone that two twists give unrelated functions.
func (f *ideal) draws(d digest) (random rand.PCG) {
	random.Seed(mix(d.high+f.twist.high), mix(d.low+f.twist.low))
	return random
}

func (f *ideal) Name() string { return Ideal }
func (f *ideal) K() int       { return f.k }
func (f *ideal) M() uint64    { return f.m }

// Index draws i times for nothing: fast enough for a control.
func (f *ideal) Index(i int, key []byte) uint64 {
	random := f.draws(f.digest(key))
	for range i {
		random.Uint64()
	}
	return scale(random.Uint64(), f.m)
}

func (f *ideal) AppendIndices(dst []uint64, key []byte) []uint64 {
	random := f.draws(f.digest(key))
	for range f.k {
		dst = append(dst, scale(random.Uint64(), f.m))
	}
	return dst
}

// drawRow fills a table's row with the indices of a digested key.
func (f *ideal) drawRow(row []uint32, d digest) {
	random := f.draws(d)
	for i := range row {
		row[i] = uint32(scale(random.Uint64(), f.m))
	}
}

// scale brings a uniform 64-bit draw into [0, m): by its high bits, without a
// division (D. Lemire, "Fast Random Integer Generation in an Interval", 2019;
// without the rejection, whose absence costs the bias that ideal tells of).
func scale(draw, m uint64) uint64 {
	high, _ := bits.Mul64(draw, m)
	return high
}

// independentXXH3 is k XXH3-64, each with a seed of its own, modulo m: what a
// good unkeyed hash of today gives when nothing is saved. (Double hashing from
// one XXH3 is the seeded family; as the control it would bring its own faults.)
type independentXXH3 struct {
	m uint64
	k int
}

// newXXH3 makes the control of XXH3: k functions over m bits, both at least 1.
func newXXH3(m uint64, k int) hashfamily.Family { return independentXXH3{m, k} }

// spread is 2^64 over the golden ratio, made odd. Multiples of it differ in all
// parts of the word: XXH3 only adds or xors its seed to keys of up to three
// bytes, so that with the seeds 0, 1, 2 … one key's i-th value would be another
// key's j-th.
const spread = 0x9E3779B97F4A7C15

func (f independentXXH3) Name() string { return XXH3 }
func (f independentXXH3) K() int       { return f.k }
func (f independentXXH3) M() uint64    { return f.m }

// Index of 0 is by XXH3 without a seed.
func (f independentXXH3) Index(i int, key []byte) uint64 {
	return xxh3.HashSeed(key, uint64(i)*spread) % f.m
}

func (f independentXXH3) AppendIndices(dst []uint64, key []byte) []uint64 {
	for i := range f.k {
		dst = append(dst, f.Index(i, key))
	}
	return dst
}
