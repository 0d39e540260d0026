package bloom

import (
	"encoding/binary"
	"math/bits"
)

// Three classic hashes can be computed eight bytes at a time. MayContain computes
// them first. BKDR and DJB are polynomials: eight bytes c0 … c7 change the hash h to
//
//	h·b^8 + c0·b^7 + c1·b^6 + … + c7
//
// and the sum on the right is computed in one 64-bit word by halves: x·b + y of each
// two neighbours, x·b^2 + y of each two of these sums, and x·b^4 + y of the last two.
// With b = 131 the first sums stay below 2^16 and the second below 2^32, so lanes of
// 16 and 32 bits hold them. DEK has a shift by five instead of the product, and
// exclusive or instead of the sum.
//
// Bytes that do not fill a word come first, as a word with leading zero bytes. Those
// add nothing to the sum, and the start value is chosen accordingly. BenchmarkWords
// compares both ways.

const (
	bytes8  = 0x00FF00FF00FF00FF // every other byte
	bytes16 = 0x0000FFFF0000FFFF // every other 16 bits
)

// Powers of BKDR's and of DJB's multiplier, modulo 2^32.
const (
	bkdr2 = 131 * 131
	bkdr4 = bkdr2 * bkdr2
	bkdr8 = bkdr4 * bkdr4 & (1<<32 - 1)

	djb2 = 33 * 33
	djb4 = djb2 * djb2
	djb8 = djb4 * djb4 & (1<<32 - 1)
)

// djbStarts[i] is DJB's start value after i zero bytes: 5381·33^i.
var djbStarts = func() (starts [8]uint32) {
	h := uint32(5381)
	for i := range starts {
		starts[i] = h
		h *= 33
	}
	return starts
}()

// firstWord returns the first len(key) mod 8 bytes of key as a big-endian number,
// and the rest of the key, which is whole words.
func firstWord(key []byte) (uint64, []byte) {
	n := len(key) & 7
	if len(key) >= 8 {
		// Two shifts: n may be 0, and one shift by 64 would cost a comparison.
		return binary.BigEndian.Uint64(key) >> 1 >> (63 - 8*uint(n)), key[n:]
	}
	w := uint64(0)
	for _, c := range key {
		w = w<<8 | uint64(c)
	}
	return w, nil
}

func bkdrWord(w uint64) uint32 {
	w = (w>>8&bytes8)*131 + w&bytes8
	w = (w>>16&bytes16)*bkdr2 + w&bytes16
	return uint32(w>>32)*bkdr4 + uint32(w)
}

func djbWord(w uint64) uint32 {
	w = (w>>8&bytes8)*33 + w&bytes8
	w = (w>>16&bytes16)*djb2 + w&bytes16
	return uint32(w>>32)*djb4 + uint32(w)
}

func dekWord(w uint64) uint32 {
	w = (w>>8&bytes8)<<5 ^ w&bytes8
	w = (w>>16&bytes16)<<10 ^ w&bytes16
	w = w>>32<<20 ^ w&(1<<32-1) // 43 bits: the upper ones go round
	return uint32(w>>32) ^ uint32(w)
}

// bkdr computes [hashfamily.BKDR].
func bkdr(key []byte) uint32 {
	w, rest := firstWord(key)
	h := bkdrWord(w)
	for ; len(rest) >= 8; rest = rest[8:] {
		h = h*bkdr8 + bkdrWord(binary.BigEndian.Uint64(rest))
	}
	return h
}

// djbAndDEK computes [hashfamily.DJB] and [hashfamily.DEK].
func djbAndDEK(key []byte) (djb, dek uint32) {
	w, rest := firstWord(key)
	n := len(key) & 7
	djb = djbStarts[n] + djbWord(w)
	dek = bits.RotateLeft32(uint32(len(key)), 5*n) ^ dekWord(w)
	for ; len(rest) >= 8; rest = rest[8:] {
		w = binary.BigEndian.Uint64(rest)
		djb = djb*djb8 + djbWord(w)
		dek = bits.RotateLeft32(dek, 5*8) ^ dekWord(w)
	}
	return djb, dek
}

// leadersOf computes [hashfamily.BKDR], DJB and DEK in one pass over the key.
func leadersOf(key []byte) (bkdr, djb, dek uint32) {
	w, rest := firstWord(key)
	n := len(key) & 7
	bkdr = bkdrWord(w)
	djb = djbStarts[n] + djbWord(w)
	dek = bits.RotateLeft32(uint32(len(key)), 5*n) ^ dekWord(w)
	for ; len(rest) >= 8; rest = rest[8:] {
		w = binary.BigEndian.Uint64(rest)
		bkdr = bkdr*bkdr8 + bkdrWord(w)
		djb = djb*djb8 + djbWord(w)
		dek = bits.RotateLeft32(dek, 5*8) ^ dekWord(w)
	}
	return bkdr, djb, dek
}
