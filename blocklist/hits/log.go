package hits

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/atomicfile"
)

// Defaults of Options.
const (
	DefaultMaxEntries = 1 << 20 // about 30 MiB of memory, and 10 MiB on disk
	DefaultSaveEvery  = 5 * time.Minute
)

// Options configure a Log.
type Options struct {
	// Dir is the state directory. Name returns the name of a list's file in it, with
	// slashes. Neither has to exist. With a nil Name nothing is written.
	Dir  string
	Name func(list string) string

	// MaxEntries is the number of entries that are kept for a list, give or take a
	// quarter; 0 means DefaultMaxEntries.
	MaxEntries int

	// SaveEvery is the time between two writes; 0 means DefaultSaveEvery.
	SaveEvery time.Duration

	Logger *slog.Logger // nil means no log

	now func() time.Time // for tests; nil means time.Now
}

// Log records matches. Its methods are safe for concurrent use.
type Log struct {
	options Options
	log     *slog.Logger
	lists   atomic.Pointer[map[string]*list] // replaced as a whole when one is added
	adding  sync.Mutex                       // held while one is added

	mu     sync.Mutex // held while files are read or written, and by Start and Close
	key    uint64
	begun  bool // files may be read and written
	closed bool

	cancel  context.CancelFunc
	full    chan struct{} // a list has more entries than it should
	running sync.WaitGroup
}

// New returns a Log, which records from now on. It reads and writes no file before
// Start.
func New(o Options) *Log {
	if o.MaxEntries == 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.SaveEvery == 0 {
		o.SaveEvery = DefaultSaveEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	l := &Log{options: o, log: o.Logger, full: make(chan struct{}, 1)}
	l.lists.Store(&map[string]*list{})
	return l
}

// tree returns the state directory.
func (l *Log) tree() atomicfile.Tree { return atomicfile.In(l.options.Dir) }

// Record records that an entry has matched. It takes about as long as a map lookup, and
// uses no file.
func (l *Log) Record(name string, hash uint64) {
	if l.list(name).record(hash, DayOf(l.options.now()), l.options.MaxEntries) {
		select {
		case l.full <- struct{}{}:
		default: // already signalled
		}
	}
}

// Start reads the files that earlier Logs have written for the lists, and begins to
// write. The key identifies the secret with which entries are hashed; a file with
// another key is replaced. Call Start again for further lists.
func (l *Log) Start(key uint64, names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.key = key
	for _, name := range names {
		x := l.list(name)
		if x.read {
			continue
		}
		x.read = true
		if l.options.Name != nil {
			x.file = fileInfo(l.tree(), l.options.Name(name))
		}
		if s, ok := l.load(name); ok {
			x.merge(s, DayOf(l.options.now()))
		}
	}
	if l.begun {
		return
	}
	l.begun = true
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.running.Go(func() { l.run(ctx) })
}

// run writes files and drops entries.
func (l *Log) run(ctx context.Context) {
	tick := time.NewTicker(l.options.SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.full:
			l.forget()
		case <-tick.C:
			if err := l.Save(); err != nil {
				l.log.Warn("hits not saved, trying again later", "error", err)
			}
		}
	}
}

// forget drops entries of lists that have too many.
func (l *Log) forget() {
	for name, x := range *l.lists.Load() {
		if n, until := x.forget(DayOf(l.options.now()), l.options.MaxEntries); n > 0 {
			l.log.Warn("more entries have matched than can be recorded: the oldest are dropped",
				"list", name, "forgotten", n, "last_matched_until", until.String(), "limit", l.options.MaxEntries)
		}
	}
}

// Close writes what is not written yet. Later matches are lost.
func (l *Log) Close() error {
	l.mu.Lock()
	cancel := l.cancel
	l.closed, l.cancel = true, nil
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	l.running.Wait()
	return l.Save()
}

// Save writes the files of lists that have something new.
func (l *Log) Save() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun || l.options.Name == nil {
		return nil
	}
	var errs []error
	for name, x := range *l.lists.Load() {
		if x.read {
			errs = append(errs, l.save(name, x))
		}
	}
	return errors.Join(errs...)
}

// Today returns the number of a list's matches since midnight UTC, those of an earlier
// process included.
func (l *Log) Today(name string) uint64 {
	x, ok := (*l.lists.Load())[name]
	if !ok {
		return 0
	}
	return x.todayOn(DayOf(l.options.now()))
}

// Total returns the number of a list's matches that this Log has recorded.
func (l *Log) Total(name string) uint64 {
	x, ok := (*l.lists.Load())[name]
	if !ok {
		return 0
	}
	return x.total.Load()
}

// Snapshot returns the current records of a list.
func (l *Log) Snapshot(name string) *Snapshot {
	return l.list(name).snapshot(DayOf(l.options.now()))
}

// list returns the records of a list, and makes them if there are none.
func (l *Log) list(name string) *list {
	if x, ok := (*l.lists.Load())[name]; ok {
		return x
	}
	l.adding.Lock()
	defer l.adding.Unlock()
	lists := *l.lists.Load()
	if x, ok := lists[name]; ok {
		return x
	}
	x := newList(l.options.now())
	lists = maps.Clone(lists)
	lists[name] = x
	l.lists.Store(&lists)
	return x
}
