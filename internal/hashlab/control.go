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

// Names of the controls, which are in every table.
const (
	Ideal = "ideal"
	XXH3  = "xxh3"
)

// ideal is k independent functions with uniform values, as nearly as a program can
// have them: for each key it starts a generator (PCG, 128 bits of state) with the
// key's HighwayHash-128 under a secret made from the seed, and takes a new draw for
// each index.
//
// It can stand for ideal hashes: HighwayHash is designed as a pseudo-random
// function, so that without its secret nobody can tell the generators' starts from
// chance, whatever the keys have in common. Two keys share a start with probability
// 2^-128; if they don't, equal indices are as rare as by chance, since PCG's output
// permutes all 128 bits of the state. No index depends on another one (unlike
// double hashing, where two fix all k).
//
// The only bias is that draws have 64 bits: an index deviates from uniform by less
// than m/2^64.
type ideal struct {
	short, long [highwayhash.Size]byte // HighwayHash's keys
	tweak       digest                 // added to each digest, for other functions of the same keys
	m           uint64
	k           int
}

// digest is a key's HighwayHash-128 in two halves.
type digest struct{ high, low uint64 }

// newIdeal returns the control of ideal hashes: k functions over m bits, both at
// least 1. Another seed gives other functions.
func newIdeal(seed, m uint64, k int) *ideal {
	// A stream of its own, apart from the laboratory's other draws.
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

// withSeed returns other functions of the same digests, so that each of many
// filters can have its own while keys are digested once, which is most of the
// work.
func (f *ideal) withSeed(seed uint64) *ideal {
	random := rand.NewPCG(seed, idealStream)
	g := *f
	g.tweak = digest{random.Uint64(), random.Uint64()}
	return &g
}

// digest digests a key. HighwayHash is faster over whole blocks of 32 bytes
// (BenchmarkIdeal), so keys of less than two blocks are padded with zeros and their
// length, which keeps them different. Longer keys are hashed unpadded, under
// another HighwayHash key, so that none is equal to a padded one.
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

// digests returns the digests of all keys.
func (f *ideal) digests(ctx context.Context, keys [][]byte) ([]digest, error) {
	all := make([]digest, len(keys))
	return all, inPieces(ctx, len(keys), func() func(i int) {
		return func(i int) { all[i] = f.digest(keys[i]) }
	})
}

// draws returns the generator of a digest. [mix] scatters the difference that the
// tweak makes: otherwise the starts under two tweaks would differ by the same
// number for all keys, and only the generator would make their functions
// unrelated.
func (f *ideal) draws(d digest) (random rand.PCG) {
	random.Seed(mix(d.high+f.tweak.high), mix(d.low+f.tweak.low))
	return random
}

func (f *ideal) Name() string { return Ideal }
func (f *ideal) K() int       { return f.k }
func (f *ideal) M() uint64    { return f.m }

// Index skips i draws: fast enough for a control.
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

// scale maps a uniform 64-bit draw to [0, m) by its high bits, without a division
// (D. Lemire, "Fast Random Integer Generation in an Interval", 2019; without the
// rejection, hence the bias that ideal mentions).
func scale(draw, m uint64) uint64 {
	high, _ := bits.Mul64(draw, m)
	return high
}

// independentXXH3 is k XXH3-64, each with a seed of its own, modulo m: the best that
// a good current unkeyed hash gives. (Double hashing from one XXH3 is the seeded
// family; as the control it would add its own faults.)
type independentXXH3 struct {
	m uint64
	k int
}

// newXXH3 returns the control of XXH3: k functions over m bits, both at least 1.
func newXXH3(m uint64, k int) hashfamily.Family { return independentXXH3{m, k} }

// goldenRatio is 2^64 divided by the golden ratio, made odd. Its multiples, which
// are the seeds, differ in all parts of the word: XXH3 only adds or xors its seed
// to keys of up to three bytes, so that with the seeds 0, 1, 2 … one key's i-th
// value would be another key's j-th.
const goldenRatio = 0x9E3779B97F4A7C15

func (f independentXXH3) Name() string { return XXH3 }
func (f independentXXH3) K() int       { return f.k }
func (f independentXXH3) M() uint64    { return f.m }

// Index returns the i-th index; that of 0 is by XXH3 without a seed.
func (f independentXXH3) Index(i int, key []byte) uint64 {
	return xxh3.HashSeed(key, uint64(i)*goldenRatio) % f.m
}

func (f independentXXH3) AppendIndices(dst []uint64, key []byte) []uint64 {
	for i := range f.k {
		dst = append(dst, f.Index(i, key))
	}
	return dst
}
