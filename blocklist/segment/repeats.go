package segment

import "slices"

// Hashes are spread evenly over the partitions, unless a few keys are most of the
// list: a line that is there a hundred million times would make a partition of
// several gigabytes, which Finish sorts in memory. So a partition of more than
// unevenSize that is unevenTimes as large as the mean is not added to before
// repeated keys are dropped.
const (
	unevenSize  = 8 << 20
	unevenTimes = 4
)

// uneven reports whether a partition is so large that keys must be repeated in it.
func (b *Builder) uneven(part int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.parts[part].size
	return size > unevenSize && size > unevenTimes*b.size/partitions
}

// repeats drops entries of a chunk whose key is there more than once.
type repeats struct {
	sorter  sorter
	unique  []byte // reused
	dropped uint64
}

// drop leaves of the entries of each key the one that stays.
func (r *repeats) drop(chunk []byte) []byte {
	s := &r.sorter
	s.raw = chunk
	s.parse()
	slices.SortFunc(s.items, s.compare)
	r.unique = r.unique[:0]
	for i, x := range s.items {
		if s.repeats(i) {
			r.dropped++
			continue
		}
		r.unique = append(r.unique, chunk[x.at-8:][:recordHead+len(s.record(x.at))]...)
	}
	return append(chunk[:0], r.unique...)
}
