package blocklist

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// Set is one state of all lists. It is immutable, and safe for concurrent use.
type Set struct {
	generation uint64
	lists      []setList
	filter     *setFilter
	confirm    bool
	monitor    bool
	all        View // of every list
	views      views
	key        *segment.Key
	onHit      func(list string, hash uint64)
	onDamage   func() // may be nil
	counters   *Counters
	stats      SetStats
}

// setList is a list in a Set.
type setList struct {
	List
	index *Index
}

// Counters count what lookups meet. Several Sets may share them.
type Counters struct {
	_              [64]byte // keeps lookups from sharing a cache line with what others write
	lookups        atomic.Uint64
	maybes         atomic.Uint64
	falsePositives atomic.Uint64
	_              [64]byte
}

// Generation returns the number of the state of the lists, from 1. Two Sets of one
// generation give the same verdicts; what Stats says of files that failed may differ.
func (s *Set) Generation() uint64 { return s.generation }

// Lookups returns how many senders were looked up in the Sets that share the Counters.
func (s *Set) Lookups() uint64 { return s.counters.lookups.Load() }

// Maybes returns how many keys the filter did not rule out.
func (s *Set) Maybes() uint64 { return s.counters.maybes.Load() }

// FalsePositives returns how many of the Maybes no list held. Without confirmation
// ([SetConfig.FilterOnly]) nobody notices them, and it is 0.
func (s *Set) FalsePositives() uint64 { return s.counters.falsePositives.Load() }

// Index returns the exact index of a list, the key that its entries are hashed
// with, and the files that an entry's number of a file stands for. Ok is false if
// there is no such list, or it has no usable version.
func (s *Set) Index(name string) (index *segment.Segment, key *segment.Key, files []string, ok bool) {
	for i := range s.lists {
		if l := &s.lists[i]; l.Name == name && l.index.segment != &noSegment {
			return l.index.segment, s.key, l.index.files, true
		}
	}
	return nil, nil, nil, false
}

// SetConfig is what a Set is made of.
type SetConfig struct {
	// Lists are in the order in which ties are decided.
	Lists []SetList

	// Filter is asked before the exact indexes. FilterOnly lets it decide alone,
	// false positives included and without file, line or reason: senders are
	// refused that no list holds. That is for comparing hash families, and allows
	// for one block list, without exceptions, and no allow list.
	Filter     Filter
	FilterOnly bool

	// Monitor makes every list only log, see [verdict.Verdict.Would].
	Monitor bool

	// Keys are those that the indexes were made with.
	Keys *Keys

	// Counters count lookups, also those in other Sets; nil: in this Set alone.
	Counters *Counters

	// OnHit, if not nil, is called for each entry that matches, with its list and
	// the hash of its key (see [Set.Index]). Many goroutines call it at once, during
	// lookups. So it must be fast.
	OnHit func(list string, hash uint64)

	// OnDamage, if not nil, is called by the first lookup that meets damage in a
	// list's index. The lookup is an error.
	OnDamage func()

	Generation uint64    // see [Set.Generation]
	Began      time.Time // since when [SetStats.Took] counts; zero: since NewSet began
}

// SetList is one list of a Set.
type SetList struct {
	List
	Index *Index
	Stats ListStats // without what depends on the filter
}

// NewSet makes a Set. It takes over what it can of the filters of previous Sets;
// each may be nil. If an index is so damaged that the filter cannot be made, the
// error is an [*IndexError].
func NewSet(ctx context.Context, c SetConfig, previous ...*Set) (*Set, error) {
	l, err := c.Filter.layout()
	if err != nil {
		return nil, err
	}
	return newSet(ctx, c, l, previous...)
}

func newSet(ctx context.Context, c SetConfig, l layout, previous ...*Set) (*Set, error) {
	if c.Began.IsZero() {
		c.Began = time.Now()
	}
	s := &Set{
		generation: c.Generation, confirm: !c.FilterOnly, monitor: c.Monitor, key: c.Keys.Segment(),
		onHit: c.OnHit, onDamage: c.OnDamage, counters: c.Counters,
	}
	if s.counters == nil {
		s.counters = new(Counters)
	}
	for _, list := range c.Lists {
		if list.Stages == 0 {
			list.Stages = verdict.AllStages
		}
		s.lists = append(s.lists, setList{list.List, list.Index})
	}
	s.all = s.newView(nil)
	var err error
	if s.filter, err = l.makeFilter(ctx, c.Keys, s.lists, previous...); err != nil {
		return nil, fmt.Errorf("building the filter: %w", err)
	}
	s.stats = s.describe(c.Lists)
	s.stats.Took = time.Since(c.Began)
	return s, nil
}

// SharesFilter reports whether both Sets have the same filter in memory.
func (s *Set) SharesFilter(other *Set) bool { return s.filter == other.filter }

func sameIndexes(a, b []setList) bool {
	return slices.EqualFunc(a, b, func(p, q setList) bool { return p.index == q.index })
}
