package hashfamily

import (
	"fmt"
	"slices"
)

// path is an implementation of SumBatch.
type path uint8

const (
	portable path = iota // Sum11, one key after the other
	avx2                 // eight keys side by side
	avx512               // sixteen keys side by side
)

// batchSize is the number of keys that AppendIndicesBatch passes to SumBatch at once.
// Their hashes stay in the first-level cache.
const batchSize = 256

// The numbers from which on a faster implementation pays off (BenchmarkFrom).
const (
	fusedFrom   = 5 // hashes, for Sum11
	batchHashes = 2 // hashes, for SumBatch with vector instructions
	batchFrom   = 8 // keys, for SumBatch
)

// SumBatch stores all eleven classic hashes of keys[i] in dst[i], as [Sum11]
// computes them. It panics if dst is shorter than keys, and leaves the rest of dst
// unchanged.
//
// On amd64 with AVX2 or AVX-512 it hashes eight or sixteen keys of about the same
// length side by side. So pass some hundred keys a call, of any lengths up to 1024
// bytes. Longer keys and very small batches cost as much as Sum11, as do all keys
// on other processors. The program detects the processor when it starts. AVX-512 is
// preferred to AVX2, and AVX2 to Sum11, by the measurements of BenchmarkEleven.
// That benchmark also has loops in Go over four keys at once, which beat Sum11 only
// for the shortest keys.
//
// SumBatch does not keep or change the keys, reads nothing outside of them, and
// does not allocate.
func SumBatch(dst [][11]uint32, keys [][]byte) {
	if len(dst) < len(keys) {
		panic(fmt.Sprintf("hashfamily: SumBatch: dst has room for %d of %d keys: make it as long as keys", len(dst), len(keys)))
	}
	sumBatch(fastest, dst, keys)
}

// sumEach implements SumBatch without vector instructions.
func sumEach(dst [][11]uint32, keys [][]byte) {
	for i, key := range keys {
		dst[i] = Sum11(key)
	}
}

// AppendIndicesBatch appends the indices of all keys to dst: the K indices of the
// first key, then those of the second, and so on, as [Classic.AppendIndices] does.
// It uses [SumBatch] and serves to fill a filter with a list: pass some hundred
// keys a call. It does not allocate if dst has the capacity.
func (c *Classic) AppendIndicesBatch(dst []uint64, keys [][]byte) []uint64 {
	dst = slices.Grow(dst, len(keys)*len(c.ids))
	least := batchHashes
	if fastest == portable {
		least = fusedFrom
	}
	if len(keys) < batchFrom || len(c.ids) < least {
		for _, key := range keys {
			dst = c.AppendIndices(dst, key)
		}
		return dst
	}
	for len(keys) > 0 {
		n := min(len(keys), batchSize)
		dst = c.appendChunk(dst, keys[:n])
		keys = keys[n:]
	}
	return dst
}

// appendChunk appends the indices of at most batchSize keys. Dst has the capacity.
func (c *Classic) appendChunk(dst []uint64, keys [][]byte) []uint64 {
	var rows [batchSize][11]uint32
	SumBatch(rows[:], keys)
	n, k := len(dst), len(c.ids)
	dst = dst[:n+len(keys)*k]
	indices := dst[n:]
	for i := range keys {
		c.putIndices(indices[i*k:i*k+k], &rows[i])
	}
	return dst
}

// putIndices sets the indices of the family's hashes from all eleven hashes.
func (c *Classic) putIndices(indices []uint64, all *[11]uint32) {
	if c.mask != 0 && c.name == classicName {
		maskAll((*[11]uint64)(indices), all, c.mask)
		return
	}
	for i, h := range c.ids {
		indices[i] = c.reduce(all[h])
	}
}

// maskAll masks all hashes. It is written out because the compiler does not unroll
// loops.
func maskAll(indices *[11]uint64, all *[11]uint32, mask uint64) {
	indices[0] = uint64(all[0]) & mask
	indices[1] = uint64(all[1]) & mask
	indices[2] = uint64(all[2]) & mask
	indices[3] = uint64(all[3]) & mask
	indices[4] = uint64(all[4]) & mask
	indices[5] = uint64(all[5]) & mask
	indices[6] = uint64(all[6]) & mask
	indices[7] = uint64(all[7]) & mask
	indices[8] = uint64(all[8]) & mask
	indices[9] = uint64(all[9]) & mask
	indices[10] = uint64(all[10]) & mask
}
