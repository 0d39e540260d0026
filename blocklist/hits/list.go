package hits

import (
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// shards is into how many parts a list's entries are divided, each with a lock of
// its own, so that lookups seldom wait for each other.
const shards = 16

// list is what is remembered of one list.
type list struct {
	shards [shards]shard
	count  atomic.Int64  // entries in all shards
	total  atomic.Uint64 // matches since the list was made
	today  atomic.Uint64 // a day in the upper 16 bits, and the matches on it
	dirty  atomic.Bool   // something is not in the file yet
	packed atomic.Uint32 // the day on which forget found no room to make; 0: none

	// These are the Log's, under its mu.
	read  bool        // the file has been read
	file  fs.FileInfo // of the file as it was read or written last; nil: there was none
	saved uint64      // matches of today that are in the file, as today has them

	mu        sync.Mutex
	since     time.Time // from when on matches are recorded
	forgotten Day       // entries whose last match was until this day may be missing
	dropped   Day       // those that forget has dropped matched last until this day
}

type shard struct {
	mu   sync.Mutex
	last map[uint64]Day
	_    [48]byte // a cache line for each lock
}

func newList(now time.Time) *list {
	x := &list{since: now.UTC().Truncate(time.Second)}
	for i := range x.shards {
		x.shards[i].last = map[uint64]Day{}
	}
	return x
}

// shard returns where an entry belongs.
func (x *list) shard(hash uint64) *shard { return &x.shards[hash>>60] }

// record notes a match, and reports whether there are too many entries now. A
// quarter more than the limit are taken until somebody makes room; beyond that
// the match is lost, and with it all certainty about this day.
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
			x.lost(day)
			return full
		}
		x.count.Add(1)
	}
	s.last[hash] = day
	return full
}

// lost notes that matches on a day are missing.
func (x *list) lost(day Day) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgotten = max(x.forgotten, day)
}

// drop notes that entries that matched last until a day go.
func (x *list) drop(until Day) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgotten, x.dropped = max(x.forgotten, until), max(x.dropped, until)
}

const countBits = 48

// addToday counts matches on a day; another day begins from zero.
func (x *list) addToday(day Day, n uint64) {
	for {
		old := x.today.Load()
		now := old + n
		if Day(old>>countBits) != day {
			now = uint64(day)<<countBits | n
		}
		if x.today.CompareAndSwap(old, now) {
			return
		}
	}
}

// todayOn returns how many matches there were on a day, if it is today.
func (x *list) todayOn(day Day) uint64 { return countOn(x.today.Load(), day) }

func countOn(today uint64, day Day) uint64 {
	if Day(today>>countBits) != day {
		return 0
	}
	return today & (1<<countBits - 1)
}

// forget drops whole days, the oldest first, until an eighth of the limit is free,
// and says how many entries went and until which day. Those of today stay; where
// there are no others, record asks for no more room on that day.
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
		x.packed.Store(uint32(today)) // it takes a look at every entry: once a day will do
		return 0, 0
	}
	x.drop(until) // before they go: who asks meanwhile must not be told too much
	n = 0
	for i := range x.shards {
		n += x.shards[i].drop(until)
	}
	x.count.Add(int64(-n))
	x.dirty.Store(true)
	return n, until
}

// drop drops what matched last until a day. The map is made anew, since one that
// was large stays so.
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

// merge takes in what a file says of the entries, and the matches of today that
// are in it and are not ours. Days to come are today: a clock was wrong.
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
			continue // it was to go
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
