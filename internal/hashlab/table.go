package hashlab

import (
	"context"
	"math/bits"

	"spamgate/hashfamily"
)

// table holds the k indices of each of many keys, so that many filters of the same
// keys need each key hashed once. Filters have up to 2^32 bits.
type table struct {
	k       int
	indices []uint32
	buf     []uint64
}

func newTable(keys, k int) *table {
	return &table{k: k, indices: make([]uint32, keys*k)}
}

// row returns the indices of the i-th key.
func (t *table) row(i int32) []uint32 { return t.indices[int(i)*t.k : (int(i)+1)*t.k] }

// set fills the i-th key's row.
func (t *table) set(f hashfamily.Family, i int32, key []byte) {
	t.buf = f.AppendIndices(t.buf[:0], key)
	for j, index := range t.buf {
		t.indices[int(i)*t.k+j] = uint32(index)
	}
}

// tabulate hashes all keys.
func tabulate(ctx context.Context, f hashfamily.Family, keys [][]byte) (*table, error) {
	t := newTable(len(keys), f.K())
	return t, inPieces(ctx, len(keys), func() func(i int) {
		own := &table{k: t.k, indices: t.indices} // each worker has a buffer
		return func(i int) { own.set(f, int32(i), keys[i]) }
	})
}

// bitmap is a filter's bits.
type bitmap []uint64

func newBitmap(m uint64) bitmap { return make(bitmap, (m+63)/64) }

// get returns a bit, 0 or 1.
func (b bitmap) get(i uint64) uint64 { return b[i>>6] >> (i & 63) & 1 }

// set sets a bit, and reports whether it was clear.
func (b bitmap) set(i uint64) bool {
	before := b[i>>6]
	b[i>>6] |= 1 << (i & 63)
	return b[i>>6] != before
}

// add sets the bits of a key.
func (b bitmap) add(row []uint32) {
	for _, i := range row {
		b[i>>6] |= 1 << (i & 63)
	}
}

// has reports whether all bits of a key are set.
func (b bitmap) has(row []uint32) bool {
	for _, i := range row {
		if b[i>>6]&(1<<(i&63)) == 0 {
			return false
		}
	}
	return true
}

// ones returns how many bits are set.
func (b bitmap) ones() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}
