package partial

import (
	"cmp"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"spamgate/internal/atomicfile"
)

// Limits of a Store.
const (
	DefaultMaxAge     = 7 * 24 * time.Hour
	DefaultMaxEntries = 50_000 // about 15 MiB of memory, and up to 14 MB on disk

	// oldAfter is how long an entry separates recipients, or makes them wait, if the
	// client does not come back. Clients try again about every hour.
	oldAfter = 24 * time.Hour
)

// Options are the options of a Store. The zero value has the defaults.
type Options struct {
	// MaxAge is how long an entry is kept; 0 means DefaultMaxAge.
	MaxAge time.Duration

	// MaxEntries bounds the entries. The oldest are dropped first. 0 means
	// DefaultMaxEntries.
	MaxEntries int

	Logger *slog.Logger // nil: no log

	now      func() time.Time // for tests; nil: time.Now
	lockWait time.Duration    // for tests; 0: defaultLockWait
}

// Store holds the entries, in memory and in a file. Its methods are safe for concurrent
// use.
type Store struct {
	options Options
	file    file // locked before mu

	mu     sync.Mutex
	index  index
	warned time.Time // when it last logged that there are too many entries
}

// Open opens a Store with a file in an existing directory. The Store creates the file
// when it has something to write. While the file cannot be used, the Store logs that and
// works in memory.
func Open(path string, o Options) *Store {
	o.MaxAge = cmp.Or(o.MaxAge, DefaultMaxAge)
	o.MaxEntries = cmp.Or(o.MaxEntries, DefaultMaxEntries)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	s := &Store{options: o, index: newIndex()}
	s.file.path, s.file.lockWait = path, cmp.Or(o.lockWait, defaultLockWait)
	err := errors.Join(s.catchUp(), atomicfile.RemoveStale(filepath.Dir(path), newPrefix, staleAfter))
	if err != nil {
		o.Logger.Warn("LMTP memory cannot be read: some recipients may get a message twice", "error", err)
	}
	return s
}

// Close closes the file. The Store must not be used afterwards.
func (s *Store) Close() {
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	s.file.close()
}

// Len returns the number of entries.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.all.Len()
}

// Recall returns the entries of a sender and a recipient, one for each message. Mostly
// there are none.
func (s *Store) Recall(from, to string) []Entry {
	s.refresh()
	p := newPair(from, to)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.now()
	s.prune(now)
	oldest := now.Add(-oldAfter).Unix()
	var known []Entry
	for _, e := range s.index.byPair[p] {
		entry := e.Entry
		entry.Old = e.used < oldest
		known = append(known, entry)
	}
	return known
}

// Turn reports whether the first recipient of a transaction should be admitted. If not,
// other recipients of its message should go first, and Turn reports true until the
// recipient has had its turn with that message.
func (s *Store) Turn(from, to string) bool {
	p := newPair(from, to)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.turn(p, s.options.now().Add(-oldAfter))
}

// Knows reports whether there is an entry for a message.
func (s *Store) Knows(m Sum) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.byMessage[m]) > 0
}

// Settle stores the outcome of a message for the recipients of a transaction, which have
// had their turn with it. If it returns nil, the entries are on disk; after an error they
// are in memory only.
func (s *Store) Settle(from string, m Sum, outcomes []Outcome) error {
	now := s.options.now()
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	unlock, err := s.begin() // reads what other processes have written
	lines, changed := s.settle(now, from, m, outcomes)
	if err == nil {
		defer unlock()
		err = s.append(lines, len(changed) > 0)
	}
	if err != nil {
		s.file.incomplete = true
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range changed {
		e.saved = true
	}
	return nil
}

// settle changes the index. It returns the lines for the file, and the entries that are
// new or have another state.
func (s *Store) settle(now time.Time, from string, m Sum, outcomes []Outcome) (lines []byte, changed []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.index.byMessage[m] {
		e.used = now.Unix() // the client has come back with the message
	}
	seen := map[pair]State{}
	for _, o := range outcomes {
		p := newPair(from, o.To)
		if before, twice := seen[p]; twice && before == Delivered {
			continue // named twice, and delivered at least once
		}
		seen[p] = o.State
		e := s.index.find(p, m)
		if e != nil {
			e.turns, e.waited = e.turns+1, false
		}
		if o.State == Settled {
			if e != nil {
				s.index.remove(e)
				lines = appendLine(lines, p, Entry{Message: m}, e.since)
			}
			continue
		}
		if e != nil && e.State == Delivered && o.State != Delivered {
			continue // a slower transaction does not undo a delivery
		}
		state := Entry{Message: m, State: o.State}
		if o.State == Refused {
			state.Words = hashWords(o.Words)
		}
		if e != nil && e.saved && e.Entry == state {
			continue
		}
		e = s.index.put(p, state, now.Unix())
		lines = appendLine(lines, p, state, e.since)
		changed = append(changed, e)
	}
	s.prune(now)
	return lines, changed
}

func (s *Store) prune(now time.Time) {
	excess := s.index.prune(now.Add(-s.options.MaxAge), s.options.MaxEntries)
	if excess > 0 && now.Sub(s.warned).Abs() > time.Minute {
		s.warned = now
		s.options.Logger.Warn("LMTP memory is full: the oldest entries are dropped, and their recipients may get a message twice",
			"limit", s.options.MaxEntries)
	}
}
