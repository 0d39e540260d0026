package segment

import (
	"context"
	"fmt"

	"github.com/minio/highwayhash"
)

// Verify reads every block and checks that nothing has changed since it was written. The
// error wraps [ErrDamaged], or is the context's.
func (s *Segment) Verify(ctx context.Context) (err error) {
	defer s.catch(panicOnFault(), &err)
	var entries uint64
	for i := range len(s.firsts) / 8 {
		if ctx.Err() != nil {
			return s.failed(context.Cause(ctx))
		}
		n, err := s.verifyBlock(i)
		if err != nil {
			return err
		}
		entries += uint64(n)
	}
	if entries != s.entries {
		return s.failed(fmt.Errorf("%w: it has %d entries instead of %d", ErrDamaged, entries, s.entries))
	}
	return nil
}

// Recheck makes the next read of each block compare its checksum again. A mapping may
// change, if a disk fails or the file is overwritten. Call it now and then; it takes
// next to no time.
func (s *Segment) Recheck() {
	for i := range s.verified {
		s.verified[i].Store(0)
	}
}

// verifyBlock checks block i and each of its entries, and returns their number.
func (s *Segment) verifyBlock(i int) (int, error) {
	stored, p, err := s.stored(i)
	if err != nil {
		return 0, err
	}
	b, ok := parseBlock(stored, p.entries)
	if !ok || highwayhash.Sum64(stored, s.key[:]) != p.checksum || b.hash(0) != s.first(i) {
		return 0, s.damagedBlock(i)
	}
	for j := range b.len() {
		if j > 0 && b.hash(j) < b.hash(j-1) || b.hash(j) > s.last(i) {
			return 0, s.damagedBlock(i)
		}
		record, ok := b.record(j)
		if !ok {
			return 0, s.damagedBlock(i)
		}
		r, ok := parseRecord(record)
		if ok {
			_, _, ok = s.commentOf(&r)
		}
		if !ok {
			return 0, s.damagedBlock(i)
		}
	}
	return b.len(), nil
}
