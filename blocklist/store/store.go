// Package store reads lists from files, and keeps what it has read up to date.
//
// A [Store] keeps a [blocklist.Set] up to date with the files on disk. It holds the
// present Set in one atomic pointer and replaces it whole: a lookup sees the old
// state or the new one, never a mixture. What fails to load, or looks wrong, keeps the
// last good version of its own list; every other change goes live.
//
// # Indexes, and what is kept of them
//
// A list's exact index is a file that is mapped into memory (package segment).
// With a state directory ([Config.StateDir]) it stays there, with what else is
// known of the list:
//
//	lists.key                 secret that all hashes and digests are keyed with
//	work/                     what is being built, a directory for each process
//	lists/NAME/current.seg    the index that serves, and what it was made of
//	lists/NAME/current.json   how its files looked when they were last seen
//	lists/NAME/current.bits   the list's part of the filter
//	lists/NAME/building       that they are being read: see [ErrKilled]
//	lists/NAME/accepted       contents that may look wrong, see [AcceptContent]
//	lists/NAME/history/       earlier versions of its files, see [Versions]
//
// A start maps the index of a list whose files are as they were last seen, and
// reads nothing. (Files that were changed less than two seconds before that are
// read once more, to compare their digests.) A list that fails at the start, or
// looks wrong, serves what is stored. Everything is replaced by renaming, so that
// whatever interrupts a process leaves a whole index; an index that is damaged is
// noticed when it is opened, or by the first lookup that meets the damage. That
// lookup is an error, and the list is read again.
//
// Without a state directory, or if it cannot be used, each start reads the lists.
// Everything else works the same.
//
// # What looks wrong
//
// A change that looks wrong is held ([ErrHeld]): a list that was emptied, has many
// invalid lines, lost many entries or became much larger, has an overlong line, or an
// entry that covers a protected name. [Store.Accept] and AcceptContent accept a list
// for its number of entries or an overlong line. Any other problem must be corrected
// in the list or the configuration.
//
// [Build] loads once, without watching.
package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/dirwatch"
)

// ErrClosed is returned by the methods of a closed Store.
var ErrClosed = errors.New("the list store is closed")

// Store keeps a Set up to date with the files on disk. Its methods are safe for
// concurrent use.
//
// It looks at files when the file system reports a change, and at each poll whether
// that does or not: network file systems never do. A list that has changed goes live
// once its files have been left alone for the debounce time. The new Set is built
// meanwhile, so that both together take no longer than the longer of the two.
type Store struct {
	set      atomic.Pointer[blocklist.Set]
	counters blocklist.Counters

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	probing atomic.Pointer[context.CancelFunc] // stops the last probe
	watcher *dirwatch.Watcher
	timing  chan timing // tells the loop what Reload changed

	swapMu sync.Mutex
	swap   chan struct{} // closed when the Set is replaced

	mu      sync.Mutex // held by who looks at files
	ended   bool       // nothing is started any more
	config  Config
	live    *snapshot // what set holds; nil before the first
	sources []*source
	staged  *stagedSet

	state    *state
	wake     chan struct{} // has room for one: something is to be done at another time
	damage   atomic.Bool   // a lookup has met a damaged index
	expiry   atomic.Int64  // when a list is due since an entry has expired, microseconds since 1970; 0: never
	archiver archiver
	failing  string // why lists were not rebuilt, as was logged; of the loop alone
}

// Build loads the lists once, without watching them, for programs that end soon. It returns
// the stats of the lists even with an error. The error names each list without a usable
// version, or is about the configuration.
func Build(ctx context.Context, c Config) (*blocklist.Set, []blocklist.ListStats, error) {
	s := newStore(c, false)
	defer s.cancel()
	defer s.state.close()
	s.ended = true
	err := s.load(ctx, c)
	var stats []blocklist.ListStats
	for _, src := range s.sources {
		stats = append(stats, describeList(src.list, src.live))
	}
	return s.Set(), stats, err
}

// Open loads the lists and starts to watch them. A list without a usable version is an error
// that names list and file, unless the list is optional. The context is for loading; the
// Store lives until Close.
func Open(ctx context.Context, c Config) (*Store, error) {
	return open(ctx, c, true)
}

// open does the work of Open, with file system events or by polling alone.
func open(ctx context.Context, c Config, events bool) (*Store, error) {
	s := newStore(c, events)
	if err := s.load(ctx, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	timing := s.config.timing()
	s.running.Go(func() { s.run(timing) })
	return s, nil
}

func newStore(c Config, events bool) *Store {
	logger := c.withDefaults().Logger
	s := &Store{
		watcher: dirwatch.New(logger, "lists", events),
		timing:  make(chan timing, 1),
		swap:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	s.state = openState(c.StateDir, c.ReadOnly, logger)
	s.state.deferring.Store(c.StoredFirst && !c.ReadOnly)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close stops watching and waits until nothing of the Store runs any more. The last Set stays
// usable.
func (s *Store) Close() error {
	s.cancel()
	err := s.watcher.Close()
	s.mu.Lock() // held by a Reload or Rescan that is on its way out
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock() // a late caller may be in it, if only to learn that it comes too late
	defer s.mu.Unlock()
	s.state.close()
	return err
}

// Set returns the present Set.
func (s *Store) Set() *blocklist.Set { return s.set.Load() }

// Await waits for a Set of the generation or a later one, and returns it.
func (s *Store) Await(ctx context.Context, generation uint64) (*blocklist.Set, error) {
	for {
		s.swapMu.Lock()
		swap := s.swap
		s.swapMu.Unlock()
		if set := s.Set(); set.Generation() >= generation {
			return set, nil
		}
		select {
		case <-swap:
		case <-s.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for generation %d of the lists: %w", generation, context.Cause(ctx))
		}
	}
}

// Reload replaces the configuration. Lists that are read as before (same paths and options) go
// on serving what they have. As ever they are read again if their files have changed, once
// those have been left alone. Rescan waits for that. On an error, as from Open, nothing
// changes.
func (s *Store) Reload(ctx context.Context, c Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := s.within(ctx)
	defer stop()
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	if err := s.load(ctx, c); err != nil {
		return err
	}
	select { // what the loop has not taken yet is out of date
	case <-s.timing:
	default:
	}
	s.timing <- s.config.timing()
	return nil
}

// Rescan looks at all files now. When it returns, what has changed is live. It waits for files
// that are still being written, at most for the configuration's MaxDebounce. The error joins
// those of all lists whose version on disk does not serve.
func (s *Store) Rescan(ctx context.Context) error {
	ctx, stop := s.within(ctx)
	defer stop()
	for {
		again, err := s.look(ctx)
		if s.ctx.Err() != nil {
			return ErrClosed
		}
		if err != nil || again.IsZero() {
			return errors.Join(err, s.listErrors())
		}
		select {
		case <-time.After(time.Until(again)):
		case <-ctx.Done():
		}
	}
}

// within returns a context that ends with ctx and with the Store.
func (s *Store) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { unhook(); cancel(nil) }
}

// listErrors joins the errors of the lists as they are now.
func (s *Store) listErrors() error {
	var errs []error
	for _, l := range s.Set().Stats().Lists {
		if l.Err != nil {
			errs = append(errs, fmt.Errorf("list %q: %w", l.Name, l.Err))
		}
	}
	return errors.Join(errs...)
}
