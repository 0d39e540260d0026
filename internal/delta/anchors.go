package delta

const (
	minSlots, maxSlots = 1 << 10, 1 << 20
	maxProbes          = 32 // bounds the time for lines that were chosen to collide
)

// anchors holds where lines of a file are: all of a small file, and of a large one those
// whose hash has enough zero bits at its end, so that another file gives the same ones.
// A line that is there twice is none.
type anchors struct {
	slots  []anchor
	used   int
	sample uint64 // mask of the bits that have to be zero
}

// anchor is the hash of a line, and where it is: its offset plus 1, or repeated; 0 in an
// unused slot.
type anchor struct {
	hash  uint64
	place int64
}

const repeated = -1

func newAnchors() *anchors { return &anchors{slots: make([]anchor, minSlots)} }

// add adds a line.
func (t *anchors) add(hash uint64, off int64) {
	if hash&t.sample != 0 {
		return
	}
	if t.used >= len(t.slots)/4*3 {
		t.grow()
		if hash&t.sample != 0 {
			return
		}
	}
	t.put(anchor{hash, off + 1})
}

// find returns where a line is; false if it is not known.
func (t *anchors) find(hash uint64) (off int64, ok bool) {
	if hash&t.sample != 0 {
		return 0, false
	}
	slot := t.slot(hash)
	if slot == nil || slot.place <= 0 {
		return 0, false
	}
	return slot.place - 1, true
}

// slot returns the slot that has a hash, or the unused one for it; nil if there is none.
func (t *anchors) slot(hash uint64) *anchor {
	last := uint64(len(t.slots) - 1)
	for i := range uint64(maxProbes) {
		slot := &t.slots[(hash>>32+i)&last]
		if slot.place == 0 || slot.hash == hash {
			return slot
		}
	}
	return nil
}

func (t *anchors) put(a anchor) {
	switch slot := t.slot(a.hash); {
	case slot == nil:
	case slot.place == 0:
		*slot = a
		t.used++
	default:
		slot.place = repeated
	}
}

// grow makes place: by more slots up to the limit, then by a smaller sample.
func (t *anchors) grow() {
	old := t.slots
	size := 2 * len(old)
	if size > maxSlots {
		size = maxSlots
		t.sample = t.sample<<1 | 1
	}
	t.slots, t.used = make([]anchor, size), 0
	for _, a := range old {
		if a.place != 0 && a.hash&t.sample == 0 {
			t.put(a)
		}
	}
}
