package hashfamily

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/minio/highwayhash"
	"github.com/twmb/murmur3"
)

// MaxDoubleBits and MaxDoubleK are the largest m and k of the double families.
const (
	MaxDoubleBits = 1 << 58
	MaxDoubleK    = 64
)

// KeySize is the length of a family's secret key in bytes.
const KeySize = highwayhash.Size

// doubleName is the name of the double family with a key, murmurName and plainName
// are those of the two without.
const (
	doubleName = "double"
	murmurWord = "murmur3"
	murmurName = doubleName + ":" + murmurWord
	plainWord  = "plain"
	plainName  = doubleName + ":" + plainWord
)

// Double is a double family: one 128-bit hash of the key makes all indices.
//
//	h1, h2 = the first and the last 8 bytes of the hash, little-endian
//	h3 = the low half of h1, followed by the low half of h2
//	a = ⌊h1·m/2^64⌋, b = ⌊h2·m/2^64⌋, c = ⌊h3·m/2^64⌋
//	index i = (a + i·b + i·(i-1)/2·c) mod m
//
// The hash of "double" is HighwayHash-128 under a secret key of 32 bytes, that of
// "double:murmur3" is MurmurHash3-128 without a key. Up to m = 2^32, a, b and c do
// not share bits of the hash that matter.
//
// "double:plain" is double hashing as in the textbooks, over MurmurHash3-128, and
// serves only to compare:
//
//	a = h1 mod m, b = h2 mod m; if m is a power of two, b's lowest bit is set
//	index i = (a + i·b) mod m
//
// Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance: Building a
// Better Bloom Filter" (ESA 2006), who show that two hashes instead of k leave the
// false positive rate the same as m grows; Dillinger and Manolios, "Bloom Filters in
// Probabilistic Verification" (FMCAD 2004), for the third, which keeps the rate p from
// about 64/sqrt(p) bits on ([Spec.Excess] for fewer); Alakuijala, Cox and Wassenberg,
// "Fast keyed hash/pseudo-random function using SIMD multiply and permute"
// (arXiv:1612.06257) for HighwayHash; Austin Appleby's SMHasher for MurmurHash3.
//
// Strong: one fast hash for any k, even for any keys. "double" is the one family
// that resists an attacker who chooses keys: colliding keys cannot be prepared
// without the secret key, if HighwayHash is a pseudo-random function, as its
// authors claim. This is the remedy of Aumasson and Bernstein, "SipHash: a fast
// short-input PRF" (INDOCRYPT 2012), against hash flooding. The key has to be
// random, stay secret, and differ between installations. An attacker who sees the
// filter's answers can still search for a false positive and use it again (Naor and
// Yogev, "Bloom Filters in Adversarial Environments", CRYPTO 2015).
//
// Weak: "double:murmur3" protects nobody: Aumasson, Bernstein and Boßlet,
// "Hash-flooding DoS reloaded" (29C3, 2012), make keys that collide under every
// seed. "double:plain" does not either, and has a floor of about 1/m. A bitmap is
// useless without its secret key.
//
// It is immutable.
type Double struct {
	stride
	murmur bool // MurmurHash3-128, not HighwayHash-128
	plain  bool // without c, and by division
	key    [KeySize]byte
}

// NewDouble returns the family "double" with k index functions, from 1 to
// [MaxDoubleK], over m bits, from 1 to [MaxDoubleBits]: HighwayHash-128 under the
// secret key of [KeySize] bytes, which is copied.
func NewDouble(m uint64, k int, key []byte) (*Double, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("hash family %s: a secret key of %d bytes: use one of %d random bytes", doubleName, len(key), KeySize)
	}
	s, err := newStride(doubleName, m, k, MaxDoubleBits, MaxDoubleK)
	if err != nil {
		return nil, err
	}
	return &Double{stride: s, key: [KeySize]byte(key)}, nil
}

// NewDoubleMurmur3 returns the family "double:murmur3". It is like [NewDouble], but
// with MurmurHash3-128 with the seed 0 (the variant for 64-bit machines) and
// without a key.
func NewDoubleMurmur3(m uint64, k int) (*Double, error) {
	s, err := newStride(murmurName, m, k, MaxDoubleBits, MaxDoubleK)
	if err != nil {
		return nil, err
	}
	return &Double{stride: s, murmur: true}, nil
}

// NewDoublePlain returns the family "double:plain": double hashing as in the
// textbooks, to compare with the others.
func NewDoublePlain(m uint64, k int) (*Double, error) {
	s, err := newStride(plainName, m, k, MaxDoubleBits, MaxDoubleK)
	if err != nil {
		return nil, err
	}
	return &Double{stride: s, murmur: true, plain: true}, nil
}

// parseDouble parses what follows "double:", if anything.
func parseDouble(arguments string) (Spec, error) {
	s := Spec{maxK: MaxDoubleK, maxM: MaxDoubleBits}
	switch arguments {
	case "":
		s.name, s.keyed, s.stride = doubleName, true, true
		s.build = func(p Params) (Family, error) { return made(NewDouble(p.M, p.K, p.Key)) }
	case murmurWord:
		s.name, s.stride = murmurName, true
		s.build = func(p Params) (Family, error) { return made(NewDoubleMurmur3(p.M, p.K)) }
	case plainWord:
		s.name = plainName
		s.build = func(p Params) (Family, error) { return made(NewDoublePlain(p.M, p.K)) }
	default:
		return Spec{}, fmt.Errorf("hash family double: unknown hash %q: use %q (HighwayHash-128 under a secret key), %q or, to compare, %q",
			arguments, doubleName, murmurName, plainName)
	}
	return s, nil
}

// Excess returns [Spec.Excess] of a filter over the family with such a fill ratio.
func (d *Double) Excess(fill float64) float64 {
	if d.plain {
		return 0 // as its Spec says: nothing is estimated
	}
	return d.stride.Excess(fill)
}

// Index returns index i of key.
func (d *Double) Index(i int, key []byte) uint64 {
	a, b, c := d.Start(key)
	return d.index(i, a, b, c)
}

// AppendIndices appends all K indices of key, in order, from one hash.
func (d *Double) AppendIndices(dst []uint64, key []byte) []uint64 {
	a, b, c := d.Start(key)
	return d.appendIndices(dst, a, b, c)
}

// Start returns the first index of key, the step to the second, and what each
// further step is longer than the one before, all below M: index i is
// (a + i·b + i·(i-1)/2·c) mod M. With them a caller can compute a few indices only.
func (d *Double) Start(key []byte) (a, b, c uint64) {
	h1, h2 := d.sum(key)
	if d.plain {
		return d.plainStart(h1, h2)
	}
	return d.start(parts{h1, h2, h1<<32 | h2&math.MaxUint32})
}

// plainStart returns the start of double hashing. A step in a power of two is odd,
// so that it visits all bits before it returns.
func (d *Double) plainStart(h1, h2 uint64) (a, b, c uint64) {
	if d.m&(d.m-1) == 0 {
		h2 |= 1
	}
	return h1 % d.m, h2 % d.m, 0
}

// sum returns the two halves of the hash of key.
func (d *Double) sum(key []byte) (h1, h2 uint64) {
	if d.murmur {
		return murmur3.Sum128(key)
	}
	sum := highwayhash.Sum128(key, d.key[:])
	return binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:])
}
