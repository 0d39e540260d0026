package hits

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot holds the records of a list at one time. It is immutable.
type Snapshot struct {
	// Since is the beginning of the recording.
	Since time.Time

	forgotten Day
	today     uint64   // as in list
	hashes    []uint64 // ascending
	days      []Day    // of each
}

// Last returns the day on which an entry last matched, or zero.
func (s *Snapshot) Last(hash uint64) Day {
	if i, ok := slices.BinarySearch(s.hashes, hash); ok {
		return s.days[i]
	}
	return 0
}

// Known returns the first day since which every match is known: for a day from Known
// on, an entry whose Last is before it has not matched since. The day on which recording
// began counts as known.
func (s *Snapshot) Known() Day {
	known := DayOf(s.Since)
	if s.forgotten > 0 {
		known = max(known, s.forgotten+1)
	}
	return known
}

// Len returns the number of entries that have matched, as far as is known.
func (s *Snapshot) Len() int { return len(s.hashes) }

// On returns the number of matches on a day if it is the last one with any, else 0.
func (s *Snapshot) On(day Day) uint64 { return countOn(s.today, day) }

// snapshot copies the records.
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
