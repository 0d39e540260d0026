package blocklist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
)

// setFilter is what is asked before the exact indexes of a Set. It is immutable. One of
// bitmaps, counting and fuse is set.
type setFilter struct {
	layout   layout
	capacity uint64 // how many keys it is made for
	keys     uint64 // of all lists, those of several lists once for each
	hash     *segment.Key

	bitmaps  *bloom.Sharded
	counting *bloom.Counting
	fuse     []*bloom.Fuse // of the lists that are not empty

	// made are the digests of the indexes that the filter is made of. Old, which
	// may be nil, has the keys of those that were damaged when it was made: it is
	// asked too.
	made [][32]byte
	old  *setFilter

	// single is the only bitmap, where there is one: for that the key need not
	// be hashed.
	single *bloom.Filter

	// similar has what Probe has measured; nil before.
	similar *atomic.Pointer[probed]
}

// mayContain reports whether any list may hold the key: false is certain. The key
// stays where it is (see [bloom.Filter.MayContain]).
func (f *setFilter) mayContain(key []byte) bool {
	return f.contains(key) || f.old != nil && f.old.contains(key)
}

func (f *setFilter) contains(key []byte) bool {
	if f.single != nil {
		return f.single.MayContain(key)
	}
	hash := f.hash.Hash(key)
	if f.bitmaps != nil {
		return f.bitmaps.MayContain(hash, key)
	}
	for _, fuse := range f.fuse {
		if fuse.MayContain(hash) {
			return true
		}
	}
	return false
}

// maxLooks is how many keys are looked at side by side: a sender with six labels
// and a tag has 16. The keys after that are asked for one by one.
const maxLooks = 16

// looks reports whether look is of use. It is not for a fuse filter, which reads the
// bits of a key side by side anyway, nor while an older filter is asked too.
func (f *setFilter) looks() bool { return (f.single != nil || f.bitmaps != nil) && f.old == nil }

// look reads the filter's first bits for the walk's keys side by side (see
// [bloom.Look]). It returns which of the keys are ruled out, the first in the
// lowest bit, and reports whether all are.
func (f *setFilter) look(walk sender.Walk) (ruledOut uint64, all bool) {
	var looks [maxLooks]bloom.Look
	n := 0
	for n < maxLooks {
		key, ok := walk.Next()
		if !ok {
			break
		}
		if f.single != nil {
			looks[n] = f.single.Look(key.Text)
		} else {
			looks[n] = f.bitmaps.Look(f.hash.Hash(key.Text), key.Text)
		}
		n++
	}
	for i := range looks[:n] {
		ruledOut |= uint64(looks[i].Maybe()^1) << i
	}
	return ruledOut, n < maxLooks && ruledOut == 1<<n-1
}

// IndexError says that the filter cannot be made since the index of a list is
// damaged.
type IndexError struct {
	List int // its number in the configuration
	Name string
	Err  error
}

func (e *IndexError) Error() string { return fmt.Sprintf("list %q: %v", e.Name, e.Err) }

// Unwrap returns Err.
func (e *IndexError) Unwrap() error { return e.Err }

// makeFilter returns the filter of a Set. It takes that of a previous Set with the same
// lists if there is one. Else it makes one: of what is stored of each list, of a
// changed copy if the kind has Remove, or anew. Previous Sets may be nil.
//
// If an index cannot be read the error is an [*IndexError], unless the index is known
// to be damaged and a previous filter has its keys: then that filter is asked too.
//
// Besides the previous Sets' filter there is at most one more in memory, and while a
// list is read for the first time the bitmaps of that.
func (l layout) makeFilter(ctx context.Context, k *Keys, lists []setList, previous ...*Set) (*setFilter, error) {
	for _, e := range previous {
		if e != nil && e.filter.hash == k.Segment() && e.filter.layout.same(l) && sameIndexes(e.lists, lists) {
			return e.filter, nil
		}
	}
	f, err := l.makeAnew(ctx, k, lists, previous)
	lists = slices.Clone(lists)
	var without [][32]byte
	for damage := (*IndexError)(nil); errors.As(err, &damage) && ctx.Err() == nil; {
		v := lists[damage.List].index
		if !v.damaged.Load() {
			return nil, err
		}
		without = append(without, v.segment.Digest())
		old := filterWith(without, previous)
		if old == nil {
			return nil, err
		}
		lists[damage.List].index = noEntries
		f, err = l.makeAnew(ctx, k, lists, previous)
		f.old = old
	}
	return f, err
}

// makeAnew makes a filter of the lists alone.
func (l layout) makeAnew(ctx context.Context, k *Keys, lists []setList, previous []*Set) (*setFilter, error) {
	f := &setFilter{layout: l, hash: k.Segment(), similar: new(atomic.Pointer[probed])}
	for i := range lists {
		if v := lists[i].index; v.keys() > 0 {
			f.keys += v.keys()
			f.made = append(f.made, v.segment.Digest())
		}
	}
	switch l.Kind {
	case KindFuse:
		return f, f.makeFuse(ctx, k, lists)
	case KindCounting:
		err := f.makeCounting(ctx, k, lists, previous)
		f.takeProbes(previous)
		return f, err
	}
	f.capacity = f.chooseCapacity(lists, previous)
	err := f.unite(ctx, k, lists)
	f.takeProbes(previous)
	return f, err
}

// filterWith returns a filter in memory that was made of all these indexes, and maybe of
// others; nil if there is none.
func filterWith(indexes [][32]byte, previous []*Set) *setFilter {
	for _, e := range previous {
		if e == nil {
			continue
		}
		for _, f := range []*setFilter{e.filter.old, e.filter} {
			if f != nil && !slices.ContainsFunc(indexes, func(d [32]byte) bool { return !slices.Contains(f.made, d) }) {
				alone := *f
				alone.old = nil // or they would form a chain
				return &alone
			}
		}
	}
	return nil
}

// chooseCapacity returns the capacity of a filter in memory, or of a stored one, if it
// fits: then the stored bits of each list can be used. Else it returns what suits the
// number of keys.
func (f *setFilter) chooseCapacity(lists []setList, previous []*Set) uint64 {
	for _, e := range previous {
		if e != nil && e.filter.layout.same(f.layout) && f.layout.fits(e.filter.capacity, f.keys) {
			return e.filter.capacity
		}
	}
	var stored, largest uint64
	for i := range lists {
		v := lists[i].index
		if n := v.keys(); n > largest {
			if capacity, ok := v.storedCapacity(); ok {
				stored, largest = capacity, n
			}
		}
	}
	if largest > 0 && f.layout.fits(stored, f.keys) {
		return stored
	}
	return f.layout.capacity(f.keys)
}

// The ways to a list's bits. First as they are saved, or made to be saved. Then made
// again, if the saved ones turn out to be damaged. If that fails too, from the list's
// index alone, without saving anything.
const (
	bitsKept = iota
	bitsRemade
	bitsDirect
)

// unite makes the bitmaps: all bits of all lists.
func (f *setFilter) unite(ctx context.Context, k *Keys, lists []setList) error {
	ways := make([]int, len(lists))
	for {
		bitmaps, err := f.layout.newBitmaps(f.capacity, k.filter[:])
		if err != nil {
			return err
		}
		i, err := f.uniteLists(ctx, bitmaps, k, lists, ways)
		if err == nil {
			f.setBitmaps(bitmaps)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if ways[i] == bitsDirect || errors.Is(err, segment.ErrDamaged) {
			return &IndexError{i, lists[i].Name, err}
		}
		// Some bits of what is damaged are in the bitmaps: they are made anew.
		if ways[i] == bitsKept && errors.Is(err, bloom.ErrDamaged) {
			ways[i] = bitsRemade
		} else {
			ways[i] = bitsDirect
		}
	}
}

// uniteLists adds the bits of each list in its way. On an error it returns the number of
// the list.
func (f *setFilter) uniteLists(ctx context.Context, bitmaps *bloom.Sharded, k *Keys, lists []setList, ways []int) (list int, err error) {
	for i := range lists {
		v := lists[i].index
		switch n := v.keys(); {
		case n == 0:
		case !f.layout.keepsBits(n, bitmaps.M()) || ways[i] == bitsDirect:
			err = bitmaps.Fill(ctx, n, v.segment.ScanKeys)
		default:
			err = v.uniteInto(ctx, bitmaps, k, f)
		}
		if err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (f *setFilter) setBitmaps(bitmaps *bloom.Sharded) {
	f.bitmaps = bitmaps
	if shards := bitmaps.Shards(); len(shards) == 1 {
		f.single = shards[0]
	}
}

// makeFuse makes the filters of the lists that have none yet.
func (f *setFilter) makeFuse(ctx context.Context, k *Keys, lists []setList) error {
	f.capacity = f.keys
	for i := range lists {
		v := lists[i].index
		if v.keys() == 0 {
			continue
		}
		fuse, err := v.fuseFilter(ctx, k, f)
		if err != nil {
			return &IndexError{i, lists[i].Name, err}
		}
		f.fuse = append(f.fuse, fuse)
	}
	return nil
}

// Settle does what can wait until the Set is in use, and takes some time: it makes
// lookups faster (see [bloom.Filter.UseHugePages]), and saves the lists' parts of
// the filter. An error says that they were not saved.
func (s *Set) Settle() error {
	switch f := s.filter; {
	case f.bitmaps != nil:
		f.bitmaps.UseHugePages()
	case f.counting != nil:
		f.counting.Filter().UseHugePages()
	}
	var errs []error
	for i := range s.lists {
		if err := s.lists[i].index.saveBits(); err != nil {
			errs = append(errs, fmt.Errorf("list %q: %w", s.lists[i].Name, err))
		}
	}
	return errors.Join(errs...)
}
