package hashlab

import "math/rand/v2"

// The keysets that test hashes with patterns of bits, as SMHasher and SMHasher3
// define them under these names. Theirs are all keys of such a kind; ours are random
// ones of them, so that filters can be filled with some and asked for others.
//
// keysetKeys is their number in the default run: enough for filters of 2^16 bits
// and k = 1 at 5/4 of their capacity (56,782 keys). A full run takes as many as of
// the other corpora.
const keysetKeys = 1 << 16

// Sizes of the keysets.
const (
	sparseBytes = 32 // of which at most sparseBits are set: 2,796,417 keys
	sparseBits  = 3

	permutedBlocks = 6 // at most, of 4 bytes: 12,204,240 keys

	differentialBytes = 8 // of a base, which makes 2,081 keys
)

// keysetSources returns the keysets, with n keys of each.
func keysetSources(seed uint64, n int) []source {
	return []source{
		generated(seed, n, "sparse", "32 bytes with at most three bits set (SMHasher3: Sparse)", sparse),
		generated(seed, n, "permutation", "one to six blocks of four bytes with few bits (SMHasher3: Permutation)", permuted),
		generated(seed, n, "differential", "random 8 bytes, and all keys that differ from them in one or two bits (after SMHasher3: Diff)", differential),
	}
}

// sparse returns a function that draws keys of 32 bytes with at most three bits
// set, all equally likely (SMHasher3: Sparse).
func sparse(r *rand.Rand) func(dst []byte) []byte {
	const n = 8 * sparseBytes
	var counts [sparseBits + 1]int // keys with at most so many bits
	keys, total := 1, 0
	for set := range counts {
		total += keys
		counts[set] = total
		keys = keys * (n - set) / (set + 1)
	}
	return func(dst []byte) []byte {
		var key [sparseBytes]byte
		pos := r.IntN(total)
		for set := 0; pos >= counts[set]; {
			bit := r.IntN(n)
			if key[bit/8]>>(bit%8)&1 == 0 {
				key[bit/8] |= 1 << (bit % 8)
				set++
			}
		}
		return append(dst, key[:]...)
	}
}

// permuted returns a function that draws texts of one to six blocks of four bytes,
// all equally likely (SMHasher3: Permutation, "4-bytes [3 high+low bits; LE]"). A
// block is 0, or has some of the three low bits of its first byte or of the three
// high bits of its last one.
func permuted(r *rand.Rand) func(dst []byte) []byte {
	blocks := [][4]byte{{}}
	for i := range byte(7) {
		blocks = append(blocks, [4]byte{i + 1}, [4]byte{3: (i + 1) << 5})
	}
	total, texts := 0, 1
	for range permutedBlocks {
		texts *= len(blocks)
		total += texts
	}
	return func(dst []byte) []byte {
		pos := r.IntN(total)
		for texts := len(blocks); ; texts *= len(blocks) { // of one block, of two …
			dst = append(dst, blocks[r.IntN(len(blocks))][:]...)
			if pos < texts {
				return dst
			}
			pos -= texts
		}
	}
}

// differential returns a function that draws a random key of 8 bytes, then all keys
// that differ from it in one bit or in two, then the next random key. (SMHasher3's
// Diff compares random keys of 8 bytes with all that differ in up to five bits, and
// counts equal values only.)
func differential(r *rand.Rand) func(dst []byte) []byte {
	const n = 8 * differentialBytes
	var base [differentialBytes]byte
	low, high := n, n // the bits to flip next; equal: one bit
	return func(dst []byte) []byte {
		start := len(dst)
		if low == n {
			for i := range base {
				base[i] = byte(r.Uint32())
			}
			low, high = 0, 0
			return append(dst, base[:]...)
		}
		dst = append(dst, base[:]...)
		key := dst[start:]
		key[low/8] ^= 1 << (low % 8)
		if high != low {
			key[high/8] ^= 1 << (high % 8)
		}
		if high++; high == n {
			low++
			high = low
		}
		return dst
	}
}
