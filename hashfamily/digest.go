package hashfamily

import (
	"crypto/md5"
	"encoding/binary"
	"math/bits"
)

// MaxDigestBits and MaxDigestK are the largest m and k of the digest family.
const (
	MaxDigestBits = 1 << 63
	MaxDigestK    = 64
)

// digestName is the name of the digest family.
const digestName = "digest"

// digestKeyRoom is the length of keys that the digest family hashes without
// allocating. It exceeds any mail address (RFC 5321, section 4.5.3.1: 64 octets of
// local part, 255 of domain, and the @).
const digestKeyRoom = 320

// Digest is the digest family. It reads MD5 of the key as one number and divides k
// indices off it.
//
//	left = 0, input = key; for each index:
//	if left < m: append '.' to input, left = MD5(input), big-endian, of 128 bits
//	index = left mod m, left = ⌊left/m⌋
//
// So the first index always reads the digest of the key and one dot. Each index
// reads at most one digest. Even a digest below m is used (a chance of m/2^128), so
// computing k indices always ends. For m = 1 all indices are 0.
//
// Source: MD5 is RFC 1321. We know of no publication of the recipe;
// testdata/digest.tsv fixes its form.
//
// Strong: any m and any k from one good mixer, whatever the keys look like. If m is
// a power of two the indices are as even as MD5 is.
//
// Weak:
//
//   - MD5 mixes but does not protect: its collisions are easy to make (Wang and Yu,
//     EUROCRYPT 2005), and without a secret key anyone can search for keys with
//     chosen indices.
//   - It is slow: one digest for every ⌊128/log₂ m⌋ indices or so.
//   - If m is not a power of two, the last index of a digest is uneven: it is used
//     only if the remaining number is not below m. In the worst case, as with m =
//     46,897,494 and the fifth index, two thirds of the keys are in the lower half.
//   - A key and the same key with a dot appended share digests: over 2^28 bits, the
//     last seven of eleven indices of the one are the first seven of the other.
//
// It is immutable.
type Digest struct{ shape }

// NewDigest returns the digest family with k index functions, from 1 to
// [MaxDigestK], over m bits, from 1 to [MaxDigestBits].
func NewDigest(m uint64, k int) (*Digest, error) {
	s, err := newShape(digestName, m, k, MaxDigestBits, MaxDigestK)
	if err != nil {
		return nil, err
	}
	return &Digest{s}, nil
}

// parseDigest returns the Spec of "digest".
func parseDigest(string) (Spec, error) {
	return Spec{
		name: digestName, maxK: MaxDigestK, maxM: MaxDigestBits,
		build: func(p Params) (Family, error) { return made(NewDigest(p.M, p.K)) },
	}, nil
}

// Index returns index i of key. It also computes those before it, since each is
// divided off what the one before left.
func (d *Digest) Index(i int, key []byte) uint64 {
	var buf [digestKeyRoom + MaxDigestK]byte
	input, left, index := d.next(append(buf[:0], key...), wide{})
	for range i {
		input, left, index = d.next(input, left)
	}
	return index
}

// AppendIndices appends all K indices of key, in order.
func (d *Digest) AppendIndices(dst []uint64, key []byte) []uint64 {
	var buf [digestKeyRoom + MaxDigestK]byte
	input, left, index := append(buf[:0], key...), wide{}, uint64(0)
	for range d.k {
		input, left, index = d.next(input, left)
		dst = append(dst, index)
	}
	return dst
}

// next computes one index from the digest's input so far and the number left, and
// returns all three. They are values: with pointers the caller's buffer would move
// from the stack to the heap.
func (d *Digest) next(input []byte, left wide) ([]byte, wide, uint64) {
	if left.below(d.m) {
		input = append(input, '.')
		sum := md5.Sum(input)
		left = wide{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
	}
	left, index := left.divide(d.m)
	return input, left, index
}

// wide is a number of 128 bits.
type wide struct{ high, low uint64 }

// below reports whether w < m.
func (w wide) below(m uint64) bool { return w.high == 0 && w.low < m }

// divide returns w/m and w mod m, for m ≥ 1, by long division with digits of 64
// bits.
func (w wide) divide(m uint64) (quotient wide, rest uint64) {
	quotient.high, rest = w.high/m, w.high%m
	quotient.low, rest = bits.Div64(rest, w.low, m)
	return quotient, rest
}
