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

// doubleName is the name of the keyed double family, murmurName of the one
// without a key.
const (
	doubleName = "double"
	murmurWord = "murmur3"
	murmurName = doubleName + ":" + murmurWord
)

// Double is a double family: one 128-bit hash of the key whose halves make all
// indices.
//
//	h1, h2 = the first and the last 8 bytes of the hash, little-endian
//	a = h1 mod m, b = h2 mod m; where m is a power of two, b's lowest bit is set
//	index i = (a + i·b) mod m
//
// The hash of "double" is HighwayHash-128 under a secret key of 32 bytes, that of
// "double:murmur3" is MurmurHash3-128 without any.
//
// Source: Kirsch and Mitzenmacher, "Less Hashing, Same Performance: Building a
// Better Bloom Filter" (ESA 2006), for the indices; Alakuijala, Cox and Wassenberg,
// "Fast keyed hash/pseudo-random function using SIMD multiply and permute"
// (arXiv:1612.06257) for HighwayHash; Austin Appleby's SMHasher for MurmurHash3.
//
// Strong: one fast hash whatever k is, even for any keys. And "double" is the one
// family that holds against somebody who chooses keys: colliding keys can't be
// prepared without the secret key, if HighwayHash is the pseudo-random function
// that its authors hold it for. This is the remedy of Aumasson and Bernstein,
// "SipHash: a fast short-input PRF" (INDOCRYPT 2012), against hash flooding. It
// needs the key to be random, to stay secret, and another for each installation.
// What is left is trying: who sees the filter's answers can ask until a key is a
// false positive, and use that again (Naor and Yogev, "Bloom Filters in
// Adversarial Environments", CRYPTO 2015).
//
// Weak: all k indices hang on two numbers, which costs a little in small filters,
// and where m is no power of two some keys have fewer than k different indices.
// "double:murmur3" protects nobody: Aumasson, Bernstein and Boßlet, "Hash-flooding
// DoS reloaded" (29C3, 2012), make keys that collide under every seed. A bitmap
// made under a secret key is of no use without it.
//
// It is immutable.
type Double struct {
	stride
	murmur bool
	key    [KeySize]byte
}

// NewDouble makes the family "double" with k index functions, from 1 to
// [MaxDoubleK], over m bits, from 1 to [MaxDoubleBits]: HighwayHash-128 under
// the secret key of [KeySize] bytes, which is copied.
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

// NewDoubleMurmur3 makes the family "double:murmur3": as [NewDouble], but
// MurmurHash3-128 with the seed 0 (the variant for 64-bit machines), without a
// key.
func NewDoubleMurmur3(m uint64, k int) (*Double, error) {
	s, err := newStride(murmurName, m, k, MaxDoubleBits, MaxDoubleK)
	if err != nil {
		return nil, err
	}
	return &Double{stride: s, murmur: true}, nil
}

// parseDouble reads "double" and "double:murmur3".
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
		return Spec{}, fmt.Errorf("hash family double: no hash %q: use %q (HighwayHash-128 under a secret key) or %q", arguments, doubleName, murmurName)
	}
	return s, nil
}

// Name returns "double" or "double:murmur3".
func (d *Double) Name() string {
	if d.murmur {
		return murmurName
	}
	return doubleName
}

// Index returns the i-th index of key.
func (d *Double) Index(i int, key []byte) uint64 { return d.index(i, d.sum(key)) }

// AppendIndices appends all K indices of key, in order, from one hash.
func (d *Double) AppendIndices(dst []uint64, key []byte) []uint64 {
	return d.appendIndices(dst, d.sum(key))
}

// sum returns the two halves of key's hash.
func (d *Double) sum(key []byte) halves {
	if d.murmur {
		h1, h2 := murmur3.Sum128(key)
		return halves{h1, h2}
	}
	sum := highwayhash.Sum128(key, d.key[:])
	return halves{binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:])}
}
