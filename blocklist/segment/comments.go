package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// SharedComments is the number of different comments (a reason and a note) that are
// stored once for all their entries. Others are stored with each entry.
const SharedComments = 1 << 16

const (
	maxSharedText = 8 << 20 // size of all shared comments
	maxSharedOne  = 1 << 10 // longer ones are hardly ever repeated
	sharedIndex   = 8       // end of the text, and length of the reason
)

// comment is the comment of an entry.
type comment struct{ reason, note string }

// dictionary numbers the shared comments.
type dictionary struct {
	mu      sync.Mutex
	numbers map[comment]uint16
	texts   []comment // by number
	bytes   int

	// full is set once numbers no longer changes; then it is read without the
	// mutex.
	full atomic.Bool
}

// number returns a comment's number and a copy of it, or false if it has to be stored
// with its entry.
func (d *dictionary) number(c comment) (own comment, number uint16, ok bool) {
	if len(c.reason)+len(c.note) > maxSharedOne {
		return comment{}, 0, false
	}
	if !d.full.Load() {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	if number, ok = d.numbers[c]; ok {
		return d.texts[number], number, true
	}
	if d.full.Load() {
		return comment{}, 0, false
	}
	own = comment{strings.Clone(c.reason), strings.Clone(c.note)}
	if d.numbers == nil {
		d.numbers = map[comment]uint16{}
	}
	number = uint16(len(d.texts))
	d.numbers[own] = number
	d.texts = append(d.texts, own)
	d.bytes += len(own.reason) + len(own.note)
	d.full.Store(len(d.texts) == SharedComments || d.bytes >= maxSharedText)
	return own, number, true
}

// section encodes the comments, ordered by their text, so that a segment does not
// depend on the order in which they came. It returns the new number for each old one.
func (d *dictionary) section() (section []byte, renumbered []uint16) {
	order := make([]uint16, len(d.texts))
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortFunc(order, func(i, j uint16) int {
		p, q := d.texts[i], d.texts[j]
		return cmp.Or(cmp.Compare(p.reason, q.reason), cmp.Compare(p.note, q.note))
	})
	renumbered = make([]uint16, len(order))
	section = make([]byte, 0, len(order)*sharedIndex+d.bytes)
	end := 0
	for number, old := range order {
		renumbered[old] = uint16(number)
		c := d.texts[old]
		end += len(c.reason) + len(c.note)
		section = binary.LittleEndian.AppendUint32(section, uint32(end))
		section = binary.LittleEndian.AppendUint32(section, uint32(len(c.reason)))
	}
	for _, old := range order {
		section = append(append(section, d.texts[old].reason...), d.texts[old].note...)
	}
	return section, renumbered
}

// sharedComment returns the comment with a number.
func (s *Segment) sharedComment(number uint16) (reason, note []byte, ok bool) {
	i := uint64(number)
	if i >= s.shared || s.shared > uint64(len(s.comments))/sharedIndex {
		return nil, nil, false
	}
	text := s.comments[s.shared*sharedIndex:]
	start := uint32(0)
	if i > 0 {
		start = binary.LittleEndian.Uint32(s.comments[(i-1)*sharedIndex:])
	}
	end := binary.LittleEndian.Uint32(s.comments[i*sharedIndex:])
	length := binary.LittleEndian.Uint32(s.comments[i*sharedIndex+4:])
	if start > end || uint64(end) > uint64(len(text)) || length > end-start {
		return nil, nil, false
	}
	text = text[start:end]
	return text[:length], text[length:], true
}

// commentOf returns the comment of a record.
func (s *Segment) commentOf(r *record) (reason, note []byte, ok bool) {
	switch {
	case r.flags&flagShared != 0:
		if len(r.comment) != sharedRefBytes {
			return nil, nil, false
		}
		return s.sharedComment(binary.LittleEndian.Uint16(r.comment))
	case r.flags&flagInline != 0:
		n, width := binary.Uvarint(r.comment)
		if width <= 0 || n > uint64(len(r.comment)-width) {
			return nil, nil, false
		}
		text := r.comment[width:]
		return text[:n], text[n:], true
	}
	return nil, nil, len(r.comment) == 0
}
