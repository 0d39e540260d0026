package segment

import "slices"

// Hashes are spread evenly over the partitions, unless a few keys make up most of the
// list: a line that is repeated a hundred million times would make a partition of
// several gigabytes, which Finish sorts in memory. So repeated keys are dropped from
// what is added to a partition that is larger than unevenSize and unevenTimes the mean.
const (
	unevenSize  = 8 << 20
	unevenTimes = 4
)

// uneven reports whether a partition is so large that it must have repeated keys.
func (b *Builder) uneven(part int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.parts[part].size
	return size > unevenSize && size > unevenTimes*b.size/partitions
}

// repeats drops repeated keys from chunks.
type repeats struct {
	sorter  sorter
	unique  []byte // reused
	dropped uint64
}

// drop keeps one entry for each key of a chunk.
func (r *repeats) drop(chunk []byte) []byte {
	s := &r.sorter
	s.raw = chunk
	s.parse()
	slices.SortFunc(s.items, s.compare)
	r.unique = r.unique[:0]
	for i, x := range s.items {
		stored := s.record(x.pos)
		if s.repeats(i) {
			if !isMarker(stored) {
				r.dropped++
			}
			continue
		}
		r.unique = append(r.unique, chunk[x.pos-8:][:recordHead+len(stored)]...)
	}
	return append(chunk[:0], r.unique...)
}
