package blocklist

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
)

// makeCounting makes a counting filter. It changes a copy of a previous Set's filter, if
// that Set has lists of the same names and the filter's capacity fits.
func (f *setFilter) makeCounting(ctx context.Context, k *Keys, lists []setList, previous []*Set) error {
	for _, e := range previous {
		if e != nil && e.filter.old == nil && e.filter.hash == f.hash && e.filter.layout.same(f.layout) &&
			f.layout.fits(e.filter.capacity, f.keys) && sameNames(e.lists, lists) {
			f.capacity = e.filter.capacity
			err := f.changeCopy(ctx, e, lists)
			if !errors.Is(err, segment.ErrDamaged) {
				return err
			}
			break // nobody knows which keys a damaged index held
		}
	}
	f.capacity = f.layout.capacity(f.keys)
	family, err := f.layout.family(f.capacity, k.filter[:])
	if err != nil {
		return err
	}
	counting, err := bloom.NewCounting(family, f.layout.CounterBits)
	if err != nil {
		return err
	}
	f.setCounting(counting)
	for i := range lists {
		if err := counting.Fill(ctx, lists[i].index.segment.ScanKeys); err != nil {
			return &IndexError{i, lists[i].Name, err}
		}
	}
	return nil
}

func (f *setFilter) setCounting(c *bloom.Counting) {
	f.counting, f.single = c, c.Filter()
}

// changeCopy makes the filter of a copy of e's. It adds the new keys and removes those
// that have gone. The exact indexes know that each removed key was there, once for
// each list. It skips lists that are the same.
func (f *setFilter) changeCopy(ctx context.Context, e *Set, lists []setList) error {
	f.setCounting(e.filter.counting.Clone())
	for i := range lists {
		old, new := e.lists[i].index, lists[i].index
		if old == new {
			continue
		}
		remove := func(key []byte) { f.counting.Remove(key) } // it is there
		if err := difference(ctx, old.segment, new.segment, remove, f.counting.Add); err != nil {
			return &IndexError{i, lists[i].Name, err}
		}
	}
	return nil
}

// differenceKeys is about how many keys of a segment are compared at once.
const differenceKeys = 1 << 12

// difference calls gone for each key of old that is not in new, and came for each key of
// new that is not in old. Both are in the order of their hashes, so it compares them
// range by range.
func difference(ctx context.Context, old, new *segment.Segment, gone, came func(key []byte)) error {
	ranges := max(old.Len(), new.Len())/differenceKeys + 1
	step := (1<<64 - 1) / ranges
	var p, q keyRange
	for i := range ranges {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first, last := i*step, (i+1)*step-1
		if i == ranges-1 {
			last = 1<<64 - 1
		}
		if err := p.read(old, first, last); err != nil {
			return err
		}
		if err := q.read(new, first, last); err != nil {
			return err
		}
		differ(&p, &q, gone, came)
	}
	return nil
}

// differ does the work of difference for one range.
func differ(p, q *keyRange, gone, came func(key []byte)) {
	i, j := 0, 0
	for i < len(p.ends) || j < len(q.ends) {
		order := 0
		switch {
		case i == len(p.ends):
			order = 1
		case j == len(q.ends):
			order = -1
		default:
			if order = cmp.Compare(p.hashes[i], q.hashes[j]); order == 0 {
				order = bytes.Compare(p.key(i), q.key(j))
			}
		}
		if order < 0 {
			gone(p.key(i))
		} else if order > 0 {
			came(q.key(j))
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
}

// keyRange is the keys of a range of hashes.
type keyRange struct {
	hashes []uint64
	ends   []int
	text   []byte
}

func (r *keyRange) read(s *segment.Segment, first, last uint64) error {
	r.hashes, r.ends, r.text = r.hashes[:0], r.ends[:0], r.text[:0]
	return s.ScanKeys(first, last, func(hash uint64, key []byte) bool {
		r.hashes = append(r.hashes, hash)
		r.text = append(r.text, key...)
		r.ends = append(r.ends, len(r.text))
		return true
	})
}

func (r *keyRange) key(i int) []byte {
	start := 0
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.text[start:r.ends[i]]
}

// sameNames reports whether the lists have the same names.
func sameNames(a, b []setList) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}
