package bloom

import (
	"slices"

	"spamgate/hashfamily"
)

// fillBatch is how many keys are hashed before their bits are written: enough
// that a processor can hash several side by side and that many cache misses are
// under way at once, and few enough that their indices stay in a near cache.
const fillBatch = 256

// batchFamily is a family that can hash many keys faster than one by one.
type batchFamily interface {
	hashfamily.Family

	// AppendIndicesBatch appends the K indices of each of the keys, as
	// AppendIndices does, one key's after the other's.
	AppendIndicesBatch(dst []uint64, keys [][]byte) []uint64
}

// AddAll adds all keys, as [Filter.Add] does one by one, but faster: the keys of
// a batch are hashed first and then their bits written in one loop, whose cache
// misses overlap.
func (f *Filter) AddAll(keys [][]byte) {
	for batch := range slices.Chunk(keys, fillBatch) {
		f.set(f.hash(batch))
	}
}

// hash returns the k indices of each of the keys, one key's after the other's.
// They are valid until the next call.
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
