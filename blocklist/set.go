package blocklist

import (
	"context"
	"fmt"
	"sync/atomic"

	"spamgate/blocklist/segment"
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
	repair     func() // asks for damaged lists to be read again; nil: nobody can
	counters   *counters
	stats      SetStats
}

// setList is a list in a Set.
type setList struct {
	List
	version *version
}

// counters count what lookups meet, over all Sets of a Store.
type counters struct {
	_              [64]byte // keeps lookups from sharing a cache line with what others write
	lookups        atomic.Uint64
	maybes         atomic.Uint64
	falsePositives atomic.Uint64
	_              [64]byte
}

// Generation numbers the states of a Store, from 1. Two Sets of one generation
// give the same decisions; what Stats says of files that failed may differ.
func (s *Set) Generation() uint64 { return s.generation }

// Lookups counts the senders looked up, in this Set and in those that came
// before it.
func (s *Set) Lookups() uint64 { return s.counters.lookups.Load() }

// Maybes counts the keys that the filter did not rule out, counted like Lookups.
func (s *Set) Maybes() uint64 { return s.counters.maybes.Load() }

// FalsePositives counts those of Maybes that no list held. Without confirmation
// ([Config.FilterOnly]) they go unnoticed and are not counted.
func (s *Set) FalsePositives() uint64 { return s.counters.falsePositives.Load() }

// Index gives the exact index of a list, the key that its entries are hashed
// with, and the files that an entry's number of a file counts. Ok is false where
// there is no such list, or it has no usable version.
func (s *Set) Index(name string) (index *segment.Segment, key *segment.Key, files []string, ok bool) {
	v := s.versionOf(name)
	if v == nil || v.segment == nil {
		return nil, nil, nil, false
	}
	for _, f := range v.Files {
		files = append(files, f.Path)
	}
	return v.segment, s.key, files, true
}

// newSet makes a Set of the lists' readings. It takes over what it can of the
// filters of previous Sets; each may be nil.
func newSet(ctx context.Context, c Config, l layout, readings []reading, previous ...*Set) (*Set, error) {
	s := &Set{confirm: !c.FilterOnly, monitor: c.Monitor, onHit: c.OnHit, lists: make([]setList, len(c.Lists))}
	s.key = &c.secrets().segment
	for i := range c.Lists {
		s.lists[i] = setList{c.Lists[i], readings[i].version()}
	}
	s.all = s.newView(nil)
	var err error
	if s.filter, err = l.makeFilter(ctx, c.secrets(), s.lists, previous...); err != nil {
		return nil, fmt.Errorf("building the filter: %w", err)
	}
	s.stats = s.describe(readings)
	return s, nil
}

func sameVersions(a, b []setList) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].version != b[i].version {
			return false
		}
	}
	return true
}
