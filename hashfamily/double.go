package hashfamily

import (
	"encoding/binary"
	"fmt"

	"github.com/minio/highwayhash"
	"github.com/twmb/murmur3"
)

// MaxDoubleBits and MaxDoubleK are the largest m and k of the double families. An
// index a + i·b stays below MaxDoubleK·MaxDoubleBits = 2^64 before it is
// reduced.
const (
	MaxDoubleBits = 1 << 58
	MaxDoubleK    = 64
)

// KeySize is the length of a family's secret key in bytes.
const KeySize = highwayhash.Size

// doubleName is the name of the double family with a key, murmurName of the one
// without.
const (
	doubleName = "double"
	murmurWord = "murmur3"
	murmurName = doubleName + ":" + murmurWord
)

// Double is a double family: the halves of one 128-bit hash of the key make all
// indices.
//
//	h1, h2 = the first and the last 8 bytes of the hash, little-endian
//	a = h1 mod m, b = h2 mod m; if m is a power of two, b's lowest bit is set
//	index i = (a + i·b) mod m
//
// The hash of "double" is HighwayHash-128 under a secret key of 32 bytes, that of
// "double:murmur3" is MurmurHash3-128 without a key.
//
// Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance: Building a
// Better Bloom Filter" (ESA 2006), for the indices; Alakuijala, Cox and Wassenberg,
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
// Weak: all k indices depend on two numbers, which costs a little in small filters,
// and if m is not a power of two some keys have fewer than k different indices.
// "double:murmur3" protects nobody: Aumasson, Bernstein and Boßlet, "Hash-flooding
// DoS reloaded" (29C3, 2012), make keys that collide under every seed. A bitmap is
// useless without its secret key.
//
// It is immutable.
type Double struct {
	stride
	murmur bool
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

// parseDouble parses what follows "double:", if anything.
func parseDouble(arguments string) (Spec, error) {
	s := Spec{maxK: MaxDoubleK, maxM: MaxDoubleBits}
	switch arguments {
	case "":
		s.name, s.keyed = doubleName, true
		s.build = func(p Params) (Family, error) { return made(NewDouble(p.M, p.K, p.Key)) }
	case murmurWord:
		s.name = murmurName
		s.build = func(p Params) (Family, error) { return made(NewDoubleMurmur3(p.M, p.K)) }
	default:
		return Spec{}, fmt.Errorf("hash family double: unknown hash %q: use %q (HighwayHash-128 under a secret key) or %q", arguments, doubleName, murmurName)
	}
	return s, nil
}

// Index returns index i of key.
func (d *Double) Index(i int, key []byte) uint64 { return d.index(i, d.sum(key)) }

// AppendIndices appends all K indices of key, in order, from one hash.
func (d *Double) AppendIndices(dst []uint64, key []byte) []uint64 {
	return d.appendIndices(dst, d.sum(key))
}

// Start returns the first index of key and the step to each next one, both below M:
// index i is (a + i·b) mod M. With them a caller can compute a few indices only.
func (d *Double) Start(key []byte) (a, b uint64) { return d.start(d.sum(key)) }

// sum returns the two halves of the hash of key.
func (d *Double) sum(key []byte) halves {
	if d.murmur {
		h1, h2 := murmur3.Sum128(key)
		return halves{h1, h2}
	}
	sum := highwayhash.Sum128(key, d.key[:])
	return halves{binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:])}
}
