package hits

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is what was known of a list at one time. It is immutable.
type Snapshot struct {
	// Since is when recording has begun.
	Since time.Time

	forgotten Day
	today     uint64   // as in list
	hashes    []uint64 // ascending
	days      []Day    // of each
}

// Last returns the day on which an entry last matched, zero where none is known.
func (s *Snapshot) Last(hash uint64) Day {
	if i, ok := slices.BinarySearch(s.hashes, hash); ok {
		return s.days[i]
	}
	return 0
}

// Known returns the first day from which every match is known: an entry whose Last is
// before a day from Known on has not matched since that day. The day on which
// recording began counts as known.
func (s *Snapshot) Known() Day {
	known := DayOf(s.Since)
	if s.forgotten > 0 {
		known = max(known, s.forgotten+1)
	}
	return known
}

// Len returns how many entries have matched, as far as is known.
func (s *Snapshot) Len() int { return len(s.hashes) }

// On counts the matches on a day, if that was the last one that had any.
func (s *Snapshot) On(day Day) uint64 { return countOn(s.today, day) }

// snapshot copies what is known.
func (x *list) snapshot(today Day) *Snapshot {
	type hit struct {
		hash uint64
		day  Day
	}
	hits := make([]hit, 0, x.count.Load()+shards)
	x.each(func(hash uint64, day Day) { hits = append(hits, hit{hash, day}) })
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.hash, b.hash) })
	s := &Snapshot{hashes: make([]uint64, len(hits)), days: make([]Day, len(hits))}
	for i, h := range hits {
		s.hashes[i], s.days[i] = h.hash, h.day
	}
	s.today = uint64(today)<<countBits | x.todayOn(today)
	x.mu.Lock()
	defer x.mu.Unlock()
	s.Since, s.forgotten = x.since, x.forgotten
	return s
}
