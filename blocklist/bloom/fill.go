package bloom

import (
	"slices"

	"spamgate/hashfamily"
)

// fillBatch is the number of keys that are hashed before their bits are written.
// With that many a processor hashes several side by side and overlaps many cache
// misses; and their indices still fit into a near cache.
const fillBatch = 256

// batchFamily is a family that hashes many keys faster than one by one.
type batchFamily interface {
	hashfamily.Family

	// AppendIndicesBatch appends the K indices of each key, as AppendIndices does,
	// one key's after another's.
	AppendIndicesBatch(dst []uint64, keys [][]byte) []uint64
}

// AddAll adds all keys. It is faster than [Filter.Add] for each: it hashes the keys
// of a batch first and then writes their bits in one loop, whose cache misses
// overlap.
func (f *Filter) AddAll(keys [][]byte) {
	for batch := range slices.Chunk(keys, fillBatch) {
		f.set(f.hash(batch))
	}
}

// hash returns the k indices of each key, one key's after another's. They are valid
// until the next call.
func (f *Filter) hash(keys [][]byte) []uint64 {
	f.indices = f.indices[:0]
	if family, ok := f.family.(batchFamily); ok {
		f.indices = family.AppendIndicesBatch(f.indices, keys)
		return f.indices
	}
	for _, key := range keys {
		f.indices = f.family.AppendIndices(f.indices, key)
	}
	return f.indices
}
