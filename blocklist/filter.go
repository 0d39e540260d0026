package blocklist

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"spamgate/blocklist/bloom"
)

// makeFilter gives the Set its filter: that of a previous Set with the same
// keys if there is one, a changed copy where the kind has Remove, else a new one.
func (s *Set) makeFilter(ctx context.Context, l layout, previous []*Set) error {
	s.layout = l
	keys := s.keys()
	for _, e := range previous {
		if e != nil && e.layout.same(l) && sameVersions(e.lists, s.lists) {
			s.filter, s.counting, s.room = e.filter, e.counting, e.room
			return nil
		}
	}
	for _, e := range previous {
		if e != nil && e.counting != nil && e.layout.same(l) && e.fits(keys) && sameNames(e.lists, s.lists) {
			s.room = e.room
			return s.changeCopy(ctx, e)
		}
	}
	return s.fill(ctx, keys)
}

// keys is how many keys the lists have, those of several lists once for each.
func (s *Set) keys() uint64 {
	var n uint64
	for i := range s.lists {
		n += uint64(len(s.lists[i].version.index.entries))
	}
	return n
}

// fits reports that the Set's filter is neither too small for so many keys, nor
// much too large.
func (s *Set) fits(keys uint64) bool {
	return keys <= s.room && s.layout.room(keys) > s.room/4
}

// fill makes a new filter of all keys.
func (s *Set) fill(ctx context.Context, keys uint64) error {
	s.room = s.layout.room(keys)
	family, err := s.layout.family(keys)
	if err != nil {
		return err
	}
	var addAll func(keys [][]byte)
	if s.layout.Kind == KindCounting {
		if s.counting, err = bloom.NewCounting(family, s.layout.CounterBits); err != nil {
			return err
		}
		s.filter, addAll = s.counting.Filter(), s.counting.AddAll
	} else {
		if s.filter, err = bloom.New(family); err != nil {
			return err
		}
		addAll = s.filter.AddAll
	}
	batch := make([][]byte, 0, addBatch)
	for i := range s.lists {
		x := s.lists[i].version.index
		for entries := range slices.Chunk(x.entries, addBatch) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			batch = batch[:0]
			for j := range entries {
				batch = append(batch, x.key(&entries[j]))
			}
			addAll(batch)
		}
	}
	return nil
}

// addBatch is how many keys are added at once, and between two looks at the
// context.
const addBatch = 1 << 12

// changeCopy makes the filter of a copy of e's: what came is added, what went is
// removed. That every removed key was there, and once for each list, the exact
// indexes know. Lists that are the same are not looked at.
func (s *Set) changeCopy(ctx context.Context, e *Set) error {
	s.counting = e.counting.Clone()
	s.filter = s.counting.Filter()
	for i := range s.lists {
		old, new := e.lists[i].version, s.lists[i].version
		if old == new {
			continue
		}
		remove := func(key []byte) { s.counting.Remove(key) } // it is there
		if err := difference(ctx, old.index, new.index, remove, s.counting.Add); err != nil {
			return err
		}
	}
	return nil
}

// difference calls gone with each key of old that is not in new, and came with
// each of new that is not in old.
func difference(ctx context.Context, old, new *index, gone, came func(key []byte)) error {
	i, j := 0, 0
	for n := 0; i < len(old.entries) || j < len(new.entries); n++ {
		if n%addBatch == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var order int
		switch {
		case i == len(old.entries):
			order = 1
		case j == len(new.entries):
			order = -1
		default:
			p, q := &old.entries[i], &new.entries[j]
			if order = cmp.Compare(p.hash, q.hash); order == 0 {
				order = bytes.Compare(old.key(p), new.key(q))
			}
		}
		if order < 0 {
			gone(old.key(&old.entries[i]))
		} else if order > 0 {
			came(new.key(&new.entries[j]))
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	return nil
}

// filterBytes is the memory that the filter takes.
func (s *Set) filterBytes() uint64 {
	if s.counting != nil {
		return s.counting.Bytes()
	}
	return s.filter.Bytes()
}

// sameNames reports that the lists are the same but for their versions.
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
