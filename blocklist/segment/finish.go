package segment

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// unitSize is the least number of bytes that a goroutine of Finish sorts at once,
	// so that the blocks of small lists are filled.
	unitSize = 1 << 20

	// maxWorkers bounds the memory of Finish. More goroutines would wait for the disk.
	maxWorkers = 8
)

// Finish makes the segment, at that path if it is not "". It replaces an older file
// there in one step. If it fails it leaves the older file and no other (unless only the
// sync of the directory failed: then the new file is in place). Without a path, a small
// segment is in the heap and a large one in a file without a name.
//
// No Adder may be at work. The Builder cannot be used afterwards.
func (b *Builder) Finish(ctx context.Context, path string, h Header) (*Segment, error) {
	defer b.Abort()
	s, err := b.finish(ctx, path, h)
	if err != nil {
		name := path
		if name == "" {
			name = "segment without a name"
		}
		return nil, fmt.Errorf("%s: making the index: %w", name, err)
	}
	return s, nil
}

func (b *Builder) finish(ctx context.Context, path string, h Header) (*Segment, error) {
	if err := b.flush(); err != nil {
		return nil, err
	}
	out, err := newOutput(path, b.o.Dir, b.size)
	if err != nil {
		return nil, err
	}
	s, err := b.write(ctx, out, h)
	if err != nil {
		out.abort()
	}
	return s, err
}

// write writes the parts of a segment, the header last.
func (b *Builder) write(ctx context.Context, out *output, caller Header) (*Segment, error) {
	comments, renumbered := b.comments.section()
	units, err := b.sort(ctx, out, renumbered)
	if err != nil {
		return nil, err
	}
	h := header{
		keyCheck: b.o.Key.check(), caller: caller, metaSize: uint64(len(caller.Meta)),
		shared: uint64(len(renumbered)), sharedSize: uint64(len(comments)),
	}
	for _, a := range b.adders {
		h.duplicates += a.repeats.dropped
	}
	firsts, places := h.sum(units)
	h.digest = digest(b.o.Key, h.encode()[atEntries:atMetaSize], comments, firsts, places)
	w := io.NewOffsetWriter(out, int64(headerSize+h.blockBytes))
	for _, part := range [][]byte{comments, firsts, places, caller.Meta} {
		if _, err := w.Write(part); err != nil {
			return nil, err
		}
	}
	if _, err := out.WriteAt(h.encode(), 0); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out.commit(b.o.Key)
}

// sum adds up the sections, and makes the table of blocks.
func (h *header) sum(units []unit) (firsts, places []byte) {
	h.nextUntil = math.MaxInt64
	for i := range units {
		u := &units[i].section
		h.entries += u.entries
		h.markers += u.markers
		h.duplicates += u.duplicates
		h.exceptions += u.exceptions
		h.kinds |= u.kinds
		h.nextUntil = min(h.nextUntil, u.nextUntil)
		firsts = append(firsts, u.firsts...)
		places = append(places, u.places...)
		h.blockBytes += uint64(units[i].size)
	}
	h.blockCount = uint64(len(firsts) / 8)
	if h.nextUntil == math.MaxInt64 {
		h.nextUntil = 0
	}
	return firsts, places
}

// unit is a range of partitions that is sorted together.
type unit struct {
	parts   []partition
	start   chan int64 // takes the offset of its blocks, from the unit before
	section            // the result, without blocks
	size    int
}

// units divides the partitions into units.
func (b *Builder) units() []unit {
	var units []unit
	from, size := 0, int64(0)
	for i := range b.parts {
		if size += b.parts[i].size; size >= unitSize || i == partitions-1 {
			units = append(units, unit{parts: b.parts[from : i+1], start: make(chan int64, 1)})
			from, size = i+1, 0
		}
	}
	return units
}

// sort sorts the entries on all cores and writes their blocks.
func (b *Builder) sort(ctx context.Context, out io.WriterAt, renumbered []uint16) ([]unit, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	units := b.units()
	units[0].start <- headerSize
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxWorkers, len(units)) {
		workers.Go(func() {
			s := &sorter{key: b.o.Key, renumbered: renumbered}
			for i := int(next.Add(1)) - 1; i < len(units); i = int(next.Add(1)) - 1 {
				if err := b.sortUnit(ctx, s, units, i, out); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return units, context.Cause(ctx)
}

// sortUnit sorts one unit. Units start in order, so the one before is done or at work
// and will send its end.
func (b *Builder) sortUnit(ctx context.Context, s *sorter, units []unit, i int, out io.WriterAt) error {
	u := &units[i]
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	made, err := s.sort(u.parts, b.file)
	if err != nil {
		return err
	}
	var start int64
	select {
	case start = <-u.start:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	u.size = len(made.blocks)
	if i+1 < len(units) {
		units[i+1].start <- start + int64(u.size)
	}
	u.section = made.without(start - headerSize)
	_, err = out.WriteAt(made.blocks, start)
	return err
}

// without returns a copy without the blocks, and with offsets in the segment.
func (s *section) without(start int64) section {
	c := *s
	c.blocks = nil
	c.firsts = append([]byte(nil), s.firsts...)
	c.places = append([]byte(nil), s.places...)
	for i := range len(c.places) / placeSize {
		p := placeAt(c.places, i)
		p.offset += uint64(start)
		p.appendTo(c.places[:placeSize*i])
	}
	return c
}
