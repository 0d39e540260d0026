package blocklist

import (
	"context"
	"fmt"
	"sync/atomic"

	"spamgate/blocklist/bloom"
)

// Set is one state of all lists. It is immutable, and safe for concurrent use.
type Set struct {
	generation uint64
	lists      []setList
	filter     *bloom.Filter
	counting   *bloom.Counting // whose bits filter has; nil for other kinds
	layout     layout
	room       uint64 // how many keys the filter is made for
	confirm    bool
	monitor    bool
	all        View // of every list
	views      views
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
// ([Config.Confirm]) they go unnoticed and are not counted.
func (s *Set) FalsePositives() uint64 { return s.counters.falsePositives.Load() }

// newSet makes a Set of the lists' readings. It takes over what it can of the
// filters of previous Sets; each may be nil.
func newSet(ctx context.Context, c Config, l layout, readings []reading, previous ...*Set) (*Set, error) {
	s := &Set{confirm: c.Confirm, monitor: c.Monitor, lists: make([]setList, len(c.Lists))}
	for i := range c.Lists {
		s.lists[i] = setList{c.Lists[i], readings[i].version()}
	}
	s.all = s.newView(nil)
	if err := s.makeFilter(ctx, l, previous); err != nil {
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
