package hashfamily

import (
	"fmt"
	"slices"
)

// path is a way to hash many keys.
type path uint8

const (
	portable path = iota // Sum11, one key after the other
	avx2                 // eight keys side by side
	avx512               // sixteen keys side by side
)

// batchRoom is how many keys AppendIndicesBatch hands to SumBatch at once. Their
// hashes stay in the first-level cache.
const batchRoom = 256

// From these numbers on it is worth it (BenchmarkFrom measures both sides).
const (
	fusedFrom   = 5 // hashes, to take Sum11
	batchHashes = 2 // hashes, to take SumBatch where it has help from the processor
	batchFrom   = 8 // keys, to take SumBatch
)

// SumBatch stores all eleven classic hashes of keys[i] in dst[i], as [Sum11]
// computes them. Dst must be at least as long as keys, or it panics; what lies
// behind is left alone.
//
// On amd64 with AVX2 or AVX-512 eight or sixteen keys are hashed side by side,
// those of about the same length together. So give it some hundred keys a call,
// of any lengths up to 1024 bytes; longer keys, and those of a very small batch,
// cost what Sum11 does, as do all keys elsewhere. The processor is asked when the
// program starts. AVX-512 comes before AVX2, and AVX2 before Sum11, because
// BenchmarkEleven says so, which measures each beside the plain loops. It also
// measures loops in Go over four keys at once, which beat Sum11 for the shortest
// keys only. Go's own vector package is an experiment that a plain go build leaves
// out.
//
// SumBatch neither keeps nor changes the keys, reads nothing outside of them,
// and does not allocate.
func SumBatch(dst [][11]uint32, keys [][]byte) {
	if len(dst) < len(keys) {
		panic(fmt.Sprintf("hashfamily: SumBatch: room for %d keys, %d given: make dst as long as keys", len(dst), len(keys)))
	}
	sumBatch(fastest, dst, keys)
}

// sumEach is SumBatch without help from the processor.
func sumEach(dst [][11]uint32, keys [][]byte) {
	for i, key := range keys {
		dst[i] = Sum11(key)
	}
}

// AppendIndicesBatch appends the indices of all keys to dst: the K indices of the
// first key, then those of the second, and so on, as [Classic.AppendIndices]
// gives them. It uses [SumBatch], and so is for filling a filter with a list:
// give it some hundred keys a call. It does not allocate when dst has room.
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
		n := min(len(keys), batchRoom)
		dst = c.appendChunk(dst, keys[:n])
		keys = keys[n:]
	}
	return dst
}

// appendChunk appends the indices of at most batchRoom keys. Dst has room for
// them.
func (c *Classic) appendChunk(dst []uint64, keys [][]byte) []uint64 {
	var rows [batchRoom][11]uint32
	SumBatch(rows[:], keys)
	n, k := len(dst), len(c.ids)
	dst = dst[:n+len(keys)*k]
	indices := dst[n:]
	for i := range keys {
		c.putIndices(indices[i*k:i*k+k], &rows[i])
	}
	return dst
}

// putIndices fills indices, one for each of the family's hashes, from all eleven.
func (c *Classic) putIndices(indices []uint64, all *[11]uint32) {
	if c.mask != 0 && c.name == classicName {
		maskAll((*[11]uint64)(indices), all, c.mask)
		return
	}
	for i, h := range c.ids {
		indices[i] = c.reduce(all[h])
	}
}

// maskAll is written out, as the compiler leaves a loop a loop, which is slower.
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
