package hits

import (
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// shards is the number of parts of a list's entries. Each has its own lock, so that
// lookups seldom wait for each other.
const shards = 16

// list holds the matches of one list.
type list struct {
	shards [shards]shard
	count  atomic.Int64  // entries in all shards
	total  atomic.Uint64 // matches since the start
	today  atomic.Uint64 // a day in the upper 16 bits, and the matches on it
	dirty  atomic.Bool   // something is not in the file yet
	packed atomic.Uint32 // the day on which forget could drop nothing; 0 means none

	// Guarded by the mu of the Log.
	read  bool        // the file has been read
	file  fs.FileInfo // the file when it was last read or written; nil if there was none
	saved uint64      // today's matches in the file, in the form of today

	mu        sync.Mutex
	since     time.Time // the beginning of the recording
	forgotten Day       // matches up to this day may be missing
	dropped   Day       // forget has dropped matches up to this day
}

type shard struct {
	mu   sync.Mutex
	last map[uint64]Day
	_    [48]byte // puts each lock in its own cache line
}

func newList(now time.Time) *list {
	x := &list{since: now.UTC().Truncate(time.Second)}
	for i := range x.shards {
		x.shards[i].last = map[uint64]Day{}
	}
	return x
}

// shard returns the shard of an entry.
func (x *list) shard(hash uint64) *shard { return &x.shards[hash>>60] }

// record records a match, and reports whether there are too many entries. It accepts a
// quarter more than the limit until forget drops some; beyond that the match is lost,
// and the day's matches are incomplete.
func (x *list) record(hash uint64, day Day, limit int) (full bool) {
	x.total.Add(1)
	x.addToday(day, 1)
	s := x.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[hash]
	if known && last >= day {
		return false
	}
	x.dirty.Store(true)
	if !known {
		n := x.count.Load()
		full = n >= int64(limit) && x.packed.Load() != uint32(day)
		if n >= int64(limit)+int64(limit)/4 {
			x.forgetUntil(day, false)
			return full
		}
		x.count.Add(1)
	}
	s.last[hash] = day
	return full
}

// forgetUntil records that matches up to a day may be missing.
func (x *list) forgetUntil(day Day, dropped bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgotten = max(x.forgotten, day)
	if dropped {
		x.dropped = max(x.dropped, day)
	}
}

const countBits = 48

// addToday counts matches on a day. A new day starts from zero.
func (x *list) addToday(day Day, n uint64) {
	for {
		old := x.today.Load()
		current := old + n
		if Day(old>>countBits) != day {
			current = uint64(day)<<countBits | n
		}
		if x.today.CompareAndSwap(old, current) {
			return
		}
	}
}

// todayOn returns the number of matches on a day if it is today, else 0.
func (x *list) todayOn(day Day) uint64 { return countOn(x.today.Load(), day) }

func countOn(today uint64, day Day) uint64 {
	if Day(today>>countBits) != day {
		return 0
	}
	return today & (1<<countBits - 1)
}

// forget drops whole days, the oldest first, until an eighth of the limit is free. It
// returns the number of dropped entries and the last of the days. Today's entries stay;
// if there are no others, record does not ask again on that day.
func (x *list) forget(today Day, limit int) (n int, until Day) {
	if x.count.Load() < int64(limit) {
		return 0, 0
	}
	excess := int(x.count.Load()) - (limit - limit/8)
	perDay := map[Day]int{}
	x.each(func(_ uint64, day Day) { perDay[day]++ })
	for _, day := range slices.Sorted(maps.Keys(perDay)) {
		if day >= today || n >= excess {
			break
		}
		n, until = n+perDay[day], day
	}
	if n == 0 {
		x.packed.Store(uint32(today)) // once a day, since this visits all entries
		return 0, 0
	}
	x.forgetUntil(until, true) // first, so that no snapshot claims to know these days
	n = 0
	for i := range x.shards {
		n += x.shards[i].drop(until)
	}
	x.count.Add(int64(-n))
	x.dirty.Store(true)
	return n, until
}

// drop drops the entries whose last match was up to a day. It makes a new map, since
// maps never shrink.
func (s *shard) drop(until Day) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[uint64]Day{}
	for hash, day := range s.last {
		if day > until {
			kept[hash] = day
		}
	}
	n := len(s.last) - len(kept)
	s.last = kept
	return n
}

// each calls do for every entry, a shard at a time.
func (x *list) each(do func(hash uint64, day Day)) {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for hash, day := range s.last {
			do(hash, day)
		}
		s.mu.Unlock()
	}
}

// merge adds the matches of a file, and those of today in it that are not ours. Future
// days, from a wrong clock, count as today.
func (x *list) merge(s *Snapshot, today Day) {
	if others := s.On(today) - min(s.On(today), countOn(x.saved, today)); others > 0 {
		x.addToday(today, others)
	}
	x.saved = uint64(today)<<countBits | s.On(today)
	x.mu.Lock()
	dropped := x.dropped
	x.mu.Unlock()
	for i, hash := range s.hashes {
		day := min(s.days[i], today)
		if day <= dropped {
			continue // forget has dropped it
		}
		to := x.shard(hash)
		to.mu.Lock()
		last, known := to.last[hash]
		if !known {
			x.count.Add(1)
		}
		if last < day {
			to.last[hash] = day
		}
		to.mu.Unlock()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.Since.Before(x.since) {
		x.since = s.Since
	}
	x.forgotten = max(x.forgotten, min(s.forgotten, today))
}
