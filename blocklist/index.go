package blocklist

import (
	"sync"
	"sync/atomic"

	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
)

// Index is the entries of one list as a Set looks them up: its exact index, and
// its part of the filter. It is immutable, apart from what it learns of itself.
type Index struct {
	segment *segment.Segment
	files   []string
	partIn  PartFile

	// damaged is set by the first lookup that meets damage.
	damaged atomic.Bool

	mu       sync.Mutex
	bits     *listBits   // of the last filter that asked; nil: none yet
	fuse     *bloom.Fuse // likewise
	identity [32]byte    // what bits or fuse are of
	saved    bool        // they are what the PartFile holds
	unusable bool        // what the PartFile holds is damaged, and not to be opened
}

// NewIndex returns the Index of a segment. Files are the paths that the numbers
// of files in its records stand for. A nil segment has no entries, a nil PartFile
// keeps nothing.
func NewIndex(s *segment.Segment, files []string, part PartFile) *Index {
	if s == nil {
		s = &noSegment
	}
	if part == nil {
		part = noPartFile{}
	}
	return &Index{segment: s, files: files, partIn: part}
}

// noSegment has no entries.
var noSegment segment.Segment

// noEntries takes the place of an index that cannot be read.
var noEntries = NewIndex(nil, nil, nil)

// Segment returns the exact index.
func (x *Index) Segment() *segment.Segment { return x.segment }

// Damaged reports whether a lookup has met damage.
func (x *Index) Damaged() bool { return x.damaged.Load() }

// MarkDamaged notes damage, and reports whether it was noted before.
func (x *Index) MarkDamaged() (before bool) { return x.damaged.Swap(true) }

// keys returns how many keys the index has.
func (x *Index) keys() uint64 { return x.segment.Keys() }
