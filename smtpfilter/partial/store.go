package partial

import (
	"cmp"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"spamgate/internal/durable"
)

// Limits of a Store.
const (
	DefaultMaxAge     = 7 * 24 * time.Hour
	DefaultMaxEntries = 50_000 // about 15 MiB of memory, and up to 14 MB on disk

	// keepsApart is how long an entry keeps recipients apart, or waiting, that the
	// client does not come back for. Clients try again each hour or so.
	keepsApart = 24 * time.Hour
)

// Options say how a Store works. The zero Options are good.
type Options struct {
	// MaxAge is how long an entry is kept that the client does not come back
	// for; 0 means DefaultMaxAge.
	MaxAge time.Duration

	// MaxEntries is how many recipients are remembered. The oldest are forgotten
	// first. 0 means DefaultMaxEntries.
	MaxEntries int

	Logger *slog.Logger // nil: no log

	now      func() time.Time // for tests; nil: time.Now
	lockWait time.Duration    // for tests; 0: defaultLockWait
}

// Store remembers. Its methods are safe for concurrent use.
type Store struct {
	options Options
	file    file // locked before mu

	mu      sync.Mutex
	index   index
	crowded time.Time // when the log last said that there are too many
}

// Open makes a Store of a file, in a directory that is there. The file is made when
// there is something to keep. One that cannot be used is logged, and the Store
// works without, for as long as it cannot.
func Open(path string, o Options) *Store {
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	s := &Store{options: o, index: newIndex()}
	s.file.path, s.file.lockWait = path, cmp.Or(o.lockWait, defaultLockWait)
	err := errors.Join(s.catchUp(), durable.RemoveStale(filepath.Dir(path), newPrefix, staleAfter))
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

// Len is the number of entries.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.all.Len()
}

// Recall returns what is known of a recipient of a sender, for each message; most
// often nothing.
func (s *Store) Recall(from, to string) []Entry {
	s.refresh()
	p := pairOf(from, to)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.now()
	s.prune(now)
	oldest := now.Add(-keepsApart).Unix()
	var known []Entry
	for _, e := range s.index.byPair[p] {
		entry := e.Entry
		entry.Old = e.used < oldest
		known = append(known, entry)
	}
	return known
}

// Turn reports whether the first recipient of a transaction should be admitted. If
// not, others of its message should go first, and it is admitted until it has had its
// turn with that message.
func (s *Store) Turn(from, to string) bool {
	p := pairOf(from, to)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.turn(p, s.options.now().Add(-keepsApart))
}

// Knows reports whether there is an entry of a message.
func (s *Store) Knows(m Sum) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.byMessage[m]) > 0
}

// Settle notes what became of a message for the recipients of a transaction, who have
// had their turn with it. When it returns nil the entries are on disk. With an error
// they are in memory alone.
func (s *Store) Settle(from string, m Sum, outcomes []Outcome) error {
	now := s.options.now()
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	unlock, err := s.begin() // with what other processes have written
	lines, learnt := s.settle(now, from, m, outcomes)
	if err == nil {
		defer unlock()
		err = s.append(lines, len(learnt) > 0)
	}
	if err != nil {
		s.file.behind = true
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range learnt {
		e.saved = true
	}
	return nil
}

// settle changes the index, and returns the lines for the file, and the entries that
// are new or have another state.
func (s *Store) settle(now time.Time, from string, m Sum, outcomes []Outcome) (lines []byte, learnt []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.index.byMessage[m] {
		e.used = now.Unix() // the client is here with the message
	}
	seen := map[pair]State{}
	for _, o := range outcomes {
		p := pairOf(from, o.To)
		if before, twice := seen[p]; twice && before == Delivered {
			continue // named twice, and delivered once at least
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
			continue // a slower transaction does not take a message away
		}
		state := Entry{Message: m, State: o.State}
		if o.State == Refused {
			state.Words = wordsOf(o.Words)
		}
		if e != nil && e.saved && e.Entry == state {
			continue
		}
		e = s.index.put(p, state, now.Unix())
		lines = appendLine(lines, p, state, e.since)
		learnt = append(learnt, e)
	}
	s.prune(now)
	return lines, learnt
}

// prune forgets what is too old or too much.
func (s *Store) prune(now time.Time) {
	crowded := s.index.prune(now.Add(-s.options.MaxAge), s.options.MaxEntries)
	if crowded > 0 && now.Sub(s.crowded).Abs() > time.Minute {
		s.crowded = now
		s.options.Logger.Warn("more recipients wait for another try than are remembered: the oldest are forgotten, and may get a message twice",
			"limit", s.options.MaxEntries)
	}
}
