package segment

import "encoding/binary"

// blockTarget is the greatest size of a block, unless a single record is larger or
// entries of one hash would be separated.
const blockTarget = 4096

// blockEntry is the size of an entry in a block's index: its hash, and the end of
// its record.
const blockEntry = 8 + 4

// block is a parsed block.
type block struct{ index, records []byte }

// parseBlock parses a block of n entries. It trusts nothing in it.
func parseBlock(b []byte, n uint64) (block, bool) {
	if n == 0 || n > uint64(len(b))/blockEntry {
		return block{}, false
	}
	return block{b[:blockEntry*n], b[blockEntry*n:]}, true
}

func (b *block) len() int { return len(b.index) / blockEntry }

func (b *block) hash(i int) uint64 { return binary.LittleEndian.Uint64(b.index[blockEntry*i:]) }

func (b *block) end(i int) uint32 { return binary.LittleEndian.Uint32(b.index[blockEntry*i+8:]) }

// record returns record i as it is stored.
func (b *block) record(i int) ([]byte, bool) {
	start := uint32(0)
	if i > 0 {
		start = b.end(i - 1)
	}
	end := b.end(i)
	if start > end || uint64(end) > uint64(len(b.records)) {
		return nil, false
	}
	return b.records[start:end], true
}

// search returns the first entry whose hash is at least the given one, in a block
// of hashes from first to last. It starts at the entry where that would be if the
// hashes were spread evenly, as they nearly are.
func (b *block) search(hash, first, last uint64) int {
	n := b.len()
	i := 0
	if first < hash && hash <= last {
		i = min(int(float64(hash-first)/float64(last-first)*float64(n)), n)
	}
	for i > 0 && b.hash(i-1) >= hash {
		i--
	}
	for i < n && b.hash(i) < hash {
		i++
	}
	return i
}

// blockWriter collects the entries of a block.
type blockWriter struct {
	index, records []byte
	last           uint64
}

func (w *blockWriter) len() int { return len(w.index) / blockEntry }

// full reports whether the block must end before this record.
func (w *blockWriter) full(hash uint64, record []byte) bool {
	return w.len() > 0 && hash != w.last &&
		len(w.index)+len(w.records)+blockEntry+len(record) > blockTarget
}

func (w *blockWriter) add(hash uint64, record []byte) {
	w.records = append(w.records, record...)
	w.index = binary.LittleEndian.AppendUint64(w.index, hash)
	w.index = binary.LittleEndian.AppendUint32(w.index, uint32(len(w.records)))
	w.last = hash
}

// appendTo appends the block and begins the next.
func (w *blockWriter) appendTo(b []byte) []byte {
	b = append(append(b, w.index...), w.records...)
	w.index, w.records = w.index[:0], w.records[:0]
	return b
}
