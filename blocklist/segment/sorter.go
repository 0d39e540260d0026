package segment

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"

	"github.com/minio/highwayhash"
)

// sorter makes the blocks of a range of hashes. One goroutine uses it repeatedly.
type sorter struct {
	key        *Key
	renumbered []uint16 // see dictionary.section; nil if comments keep their numbers

	raw     []byte // chunks
	items   []item
	spare   []item // see order
	buckets []int
	block   blockWriter
	section // the result
}

// item is an entry: its hash, and the offset of its record's length in raw.
type item struct {
	hash uint64
	pos  int
}

// section is the result of a range of hashes.
type section struct {
	blocks         []byte
	firsts, places []byte // of the table; offsets are those in blocks

	entries, markers, duplicates, exceptions uint64
	nextUntil                                int64
	kinds                                    uint8
}

// sort makes the blocks of neighbouring partitions. The section is valid until the next
// call.
func (s *sorter) sort(parts []partition, file *os.File) (*section, error) {
	if err := s.read(parts, file); err != nil {
		return nil, err
	}
	s.parse()
	s.order()
	s.section = section{
		blocks: s.blocks[:0], firsts: s.firsts[:0], places: s.places[:0],
		nextUntil: math.MaxInt64,
	}
	s.encode()
	return &s.section, nil
}

// read reads the chunks, and frees those in memory.
func (s *sorter) read(parts []partition, file *os.File) error {
	var size int64
	for i := range parts {
		size += parts[i].size
	}
	s.raw = slices.Grow(s.raw[:0], int(size))
	for i := range parts {
		for _, chunk := range parts[i].kept {
			s.raw = append(s.raw, chunk...)
		}
		parts[i].kept = nil
		for _, x := range parts[i].spilled {
			start := len(s.raw)
			s.raw = s.raw[:start+x.size]
			if _, err := file.ReadAt(s.raw[start:], x.offset); err != nil {
				return err
			}
			if highwayhash.Sum64(s.raw[start:], s.key[:]) != x.checksum {
				return fmt.Errorf("%s: %w: a temporary file does not hold what was written to it", file.Name(), ErrDamaged)
			}
		}
	}
	return nil
}

// parse finds the records, and sets the final numbers of comments.
func (s *sorter) parse() {
	s.items = s.items[:0]
	for pos := 0; pos < len(s.raw); {
		hash := binary.LittleEndian.Uint64(s.raw[pos:])
		s.items = append(s.items, item{hash, pos + 8})
		record := s.record(pos + 8)
		if record[0]&flagShared != 0 && s.renumbered != nil {
			number := record[len(record)-sharedRefBytes:]
			binary.LittleEndian.PutUint16(number, s.renumbered[binary.LittleEndian.Uint16(number)])
		}
		pos += recordHead + len(record)
	}
}

// record returns the record whose length is at an offset of raw.
func (s *sorter) record(pos int) []byte {
	return s.raw[pos+4:][:binary.LittleEndian.Uint32(s.raw[pos:])]
}

// order sorts the items. Hashes are spread evenly, so they are first dealt to about as
// many buckets as there are items, which leaves few comparisons: that takes a ninth of
// the time of a plain sort (BenchmarkOrder).
func (s *sorter) order() {
	if len(s.items) == 0 {
		return
	}
	low, high := uint64(math.MaxUint64), uint64(0)
	for _, x := range s.items {
		low, high = min(low, x.hash), max(high, x.hash)
	}
	shift := max(bits.Len64(high-low)-bits.Len(uint(len(s.items))), 0)
	count := int((high-low)>>shift) + 1
	// In the end bucket i is from buckets[i] to buckets[i+1].
	s.buckets = slices.Grow(s.buckets[:0], count+2)[:count+2]
	clear(s.buckets)
	for _, x := range s.items {
		s.buckets[(x.hash-low)>>shift+2]++
	}
	for i := 2; i < len(s.buckets); i++ {
		s.buckets[i] += s.buckets[i-1]
	}
	s.spare = slices.Grow(s.spare[:0], len(s.items))[:len(s.items)]
	for _, x := range s.items {
		next := &s.buckets[(x.hash-low)>>shift+1]
		s.spare[*next] = x
		*next++
	}
	s.items, s.spare = s.spare, s.items
	for i := range count {
		if from, to := s.buckets[i], s.buckets[i+1]; to-from > 1 {
			slices.SortFunc(s.items[from:to], s.compare)
		}
	}
}

// compare orders entries by hash, then key; of one key, the entry that is kept is the
// first.
func (s *sorter) compare(p, q item) int {
	if p.hash != q.hash {
		return cmp.Compare(p.hash, q.hash)
	}
	stored := [2][]byte{s.record(p.pos), s.record(q.pos)}
	a, _ := parseRecord(stored[0])
	b, _ := parseRecord(stored[1])
	return cmp.Or(
		bytes.Compare(a.key, b.key),
		-cmp.Compare(a.flags&flagException, b.flags&flagException),
		-cmp.Compare(a.end(), b.end()),
		cmp.Compare(a.file, b.file),
		cmp.Compare(a.line, b.line),
		bytes.Compare(stored[0], stored[1]), // for the same result each time
	)
}

// end returns the expiry of an entry.
func (r *record) end() int64 {
	if r.flags&flagUntil == 0 {
		return math.MaxInt64
	}
	return r.until
}

// repeats reports whether item i has the key of the item before.
func (s *sorter) repeats(i int) bool {
	return i > 0 && s.items[i].hash == s.items[i-1].hash && bytes.Equal(s.keyOf(i), s.keyOf(i-1))
}

func (s *sorter) keyOf(i int) []byte {
	key, _, _ := recordKey(s.record(s.items[i].pos))
	return key
}

// encode writes the sorted entries as blocks.
func (s *sorter) encode() {
	for i, x := range s.items {
		stored := s.record(x.pos)
		if s.repeats(i) {
			if !isMarker(stored) {
				s.duplicates++
			}
			continue
		}
		if s.block.full(x.hash, stored) {
			s.endBlock()
		}
		if s.block.len() == 0 {
			s.firsts = binary.LittleEndian.AppendUint64(s.firsts, x.hash)
		}
		s.block.add(x.hash, stored)
		s.count(stored)
	}
	if s.block.len() > 0 {
		s.endBlock()
	}
}

// count counts an entry.
func (s *section) count(stored []byte) {
	s.entries++
	s.kinds |= 1 << (stored[0] & kindMask)
	if isMarker(stored) {
		s.markers++
	}
	if stored[0]&flagException != 0 {
		s.exceptions++
	}
	if stored[0]&flagUntil != 0 {
		r, _ := parseRecord(stored)
		s.nextUntil = min(s.nextUntil, r.until)
	}
}

// endBlock writes the collected block.
func (s *sorter) endBlock() {
	p := place{offset: uint64(len(s.blocks)), entries: uint64(s.block.len())}
	s.blocks = s.block.appendTo(s.blocks)
	p.checksum = highwayhash.Sum64(s.blocks[p.offset:], s.key[:])
	s.places = p.appendTo(s.places)
}
