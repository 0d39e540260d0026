// Package recipients keeps the recipient domains, the valid recipients and those of recipient
// policies that stand in files, and reads a file again when it changes.
//
// A version that cannot be read or looks wrong is held, as with lists: the last good one
// serves, from the state directory after a restart. A lost domain would have its mail
// refused for good, and an empty file everybody's.
package recipients

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/dirwatch"
	"spamgate/internal/text"
	"spamgate/smtpfilter"
)

// Kind is what a file has: the key of [policy], or the table, that names it.
type Kind string

// The kinds.
const (
	RecipientDomains Kind = "recipient_domains"
	ValidRecipients  Kind = "valid_recipients"
	RecipientPolicy  Kind = "recipient_policy"
)

// Spec is a file in the configuration.
type Spec struct {
	Kind   Kind
	Policy string // the name of the recipient policy; else ""
	Path   string // absolute
}

// Name returns the name of the file in commands and metrics: that of its policy, or its key.
func (s Spec) Name() string { return cmp.Or(s.Policy, string(s.Kind)) }

// key returns the key of the configuration that names the file, for messages.
func (s Spec) key() string {
	if s.Kind == RecipientPolicy {
		return "match of the [[recipient_policy]] " + s.Policy
	}
	return "policy." + string(s.Kind)
}

// Options are the options of a File.
type Options struct {
	// StateDir holds the copies of the last good versions; "" keeps none.
	StateDir string

	// PollInterval is the time between two looks if the file system reports no changes;
	// 0 means 30 seconds.
	PollInterval time.Duration

	Logger *slog.Logger // nil: no log

	debounce time.Duration // for tests; 0 means defaultDebounce
}

// A change counts once the file has been left alone for a time, and at the latest when it
// has changed for maxDebounce: programs write files in pieces, or remove them first.
const (
	defaultDebounce = 250 * time.Millisecond
	maxDebounce     = 5 * time.Second
)

// File is a file that is watched. Its methods are safe for concurrent use.
type File struct {
	spec    Spec
	options Options
	log     *slog.Logger

	live atomic.Pointer[version]

	looking sync.Mutex // held by who looks at the file
	seen    stamp      // of the version on disk, as it was last read
	sum     [32]byte   // its SHA-256, if it could be read
	read    bool       // it could be
	copied  [32]byte   // that of the copy in the state directory

	mu      sync.Mutex
	problem error     // why the version on disk does not serve; nil: it does
	since   time.Time // when that began
	onDisk  int       // the entries of the version on disk; 0: unknown

	watcher *dirwatch.Watcher // nil: none, and nothing is written
	stop    chan struct{}
	closing sync.Once
	running sync.WaitGroup
}

// version is a version that serves.
type version struct {
	*content
	loaded, modified time.Time
}

// Status is the state of a File.
type Status struct {
	Spec
	Entries, Invalid int
	First            Problem   // the first invalid line of the version that serves
	Loaded, Modified time.Time // of the version that serves
	Err              error     // why the version on disk does not serve
	Since            time.Time // when that began
	Acceptable       bool      // Accept makes it serve
	OnDisk           int       // the entries of the version on disk; 0: unknown
}

// Open reads a file and watches it. If it cannot be read, or looks wrong, the last good
// version in the state directory serves. Without one that is an error.
func Open(spec Spec, o Options) (*File, error) {
	f := newFile(spec, o)
	f.watcher = dirwatch.New(f.log, "recipients", true)
	f.watch() // before reading, to miss no change
	f.readCopy()
	if err := f.first(); f.live.Load() == nil {
		return nil, errors.Join(err, f.watcher.Close())
	}
	f.running.Go(f.run)
	return f, nil
}

// Read is Open for programs that end soon: it does not watch the file, and writes nothing.
func Read(spec Spec, stateDir string) (*File, error) {
	f := newFile(spec, Options{StateDir: stateDir})
	f.readCopy()
	if err := f.first(); f.live.Load() == nil {
		return nil, err
	}
	return f, nil
}

// first looks at the file for the first time, and again while somebody writes to it.
func (f *File) first() error {
	for began := time.Now(); ; time.Sleep(f.options.debounce) {
		if err := f.Look(); !errors.Is(err, ErrChanged) || time.Since(began) > maxDebounce {
			return err
		}
	}
}

func newFile(spec Spec, o Options) *File {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PollInterval <= 0 {
		o.PollInterval = 30 * time.Second
	}
	if o.debounce == 0 {
		o.debounce = defaultDebounce
	}
	return &File{spec: spec, options: o, log: o.Logger.With("key", spec.Name(), "file", spec.Path), stop: make(chan struct{})}
}

// Close ends the watching. The last version remains.
func (f *File) Close() error {
	var err error
	f.closing.Do(func() {
		close(f.stop)
		f.running.Wait()
		if f.watcher != nil {
			err = f.watcher.Close()
		}
	})
	return err
}

// Spec returns what Open was called with.
func (f *File) Spec() Spec { return f.spec }

// PollInterval returns the time between two looks.
func (f *File) PollInterval() time.Duration { return f.options.PollInterval }

// Domains returns the present recipient domains. The file must be of that kind.
func (f *File) Domains() *smtpfilter.DomainSet { return f.live.Load().domains }

// Addresses returns the present valid recipients. The file must be of that kind.
func (f *File) Addresses() *smtpfilter.AddressSet { return f.live.Load().addresses }

// Set returns the present recipients of a policy. The file must be of that kind.
func (f *File) Set() *smtpfilter.RecipientSet { return f.live.Load().set }

// Status returns the present state.
func (f *File) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.live.Load()
	return Status{
		Spec: f.spec, Entries: v.entries(), Invalid: v.invalid, First: v.first, Loaded: v.loaded, Modified: v.modified,
		Err: f.problem, Since: f.since, Acceptable: errors.Is(f.problem, ErrShrunk), OnDisk: f.onDisk,
	}
}

// run looks at the file at intervals and after changes, until Close.
func (f *File) run() {
	f.watcher.Loop(f.stop, f.options.PollInterval, f.options.debounce, func() {
		f.watch()
		_ = f.Look() // which logs errors
	})
}

// watch watches the directories that lead to the file.
func (f *File) watch() {
	f.watcher.Take()
	_, _ = dirwatch.Find([]string{text.EscapeGlob(f.spec.Path)}, f.watcher.Plan) // Look reports errors
	f.watcher.Settle()
}

// Look reads the file if it has changed. If the version on disk does not serve, it returns
// why, each time; it logs that once.
func (f *File) Look() error {
	f.looking.Lock()
	defer f.looking.Unlock()
	return f.look(false)
}

// Accept makes a version serve that is held because it has lost many entries, and keeps it
// for the next start.
func (f *File) Accept() error {
	f.looking.Lock()
	defer f.looking.Unlock()
	if err := f.look(false); err == nil || !errors.Is(err, ErrShrunk) {
		return errors.Join(ErrNothingHeld, err)
	}
	f.seen, f.read = stamp{}, false
	return f.look(true)
}

// look reads the file if it has changed. The caller holds f.looking.
func (f *File) look(accept bool) error {
	current := f.settle()
	if !current.changed(f.seen) {
		return f.held()
	}
	was := f.live.Load()
	c, raw, err := readFile(f.spec, current)
	sum := sha256.Sum256(raw)
	if err == nil && f.read && sum == f.sum {
		f.seen = current
		return f.held()
	}
	f.seen, f.sum, f.read = current, sum, err == nil
	onDisk := 0
	if err == nil {
		onDisk = c.entries()
		err = check(f.spec, c, was, accept)
	}
	f.mu.Lock()
	f.onDisk = onDisk
	f.mu.Unlock()
	if err != nil {
		f.hold(err)
		return err
	}
	v := &version{c, time.Now(), current.info.ModTime()}
	f.live.Store(v)
	f.logLive(was, v)
	f.mu.Lock()
	f.problem, f.since = nil, time.Time{}
	f.mu.Unlock()
	if f.watcher != nil || accept {
		f.writeCopy(raw)
	}
	return nil
}

// settle waits until a file that has changed is left alone, and returns its stamp. The first
// look does not wait.
func (f *File) settle() stamp {
	current := stampOf(f.spec.Path)
	for began := time.Now(); f.watcher != nil && f.seen != (stamp{}) && current.changed(f.seen) && time.Since(began) < maxDebounce; {
		select {
		case <-time.After(f.options.debounce):
		case <-f.stop:
			return f.seen
		}
		later := stampOf(f.spec.Path)
		if !later.differs(current) {
			break
		}
		current = later
	}
	return current
}

// held returns why the version on disk does not serve.
func (f *File) held() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// hold notes that the version on disk does not serve, and logs it once.
func (f *File) hold(err error) {
	before := f.held()
	f.mu.Lock()
	f.problem = err
	if before == nil {
		f.since = time.Now()
	}
	f.mu.Unlock()
	if before != nil && before.Error() == err.Error() {
		return
	}
	if v := f.live.Load(); v != nil {
		f.log.Error("recipients held, their last good version serves", "error", err.Error(),
			"entries", v.entries(), "loaded", v.loaded.UTC().Format(time.RFC3339))
	}
}

// logLive logs that a version serves.
func (f *File) logLive(was, v *version) {
	before := 0
	if was != nil {
		before = was.entries()
	}
	f.log.Info("recipients live", "entries_before", before, "entries", v.entries(), "invalid", v.invalid)
	if v.invalid > 0 {
		f.log.Warn("invalid lines of recipients skipped", "count", v.invalid, "line", v.first.Line, "text", v.first.Text, "problem", v.first.What)
	}
	if f.held() != nil {
		f.log.Info("recipients are good again", "entries", v.entries())
	}
}

// copyName is the name of the copy in the state directory.
func (s Spec) copyName() string {
	name := string(s.Kind)
	if s.Policy != "" {
		name += "-" + s.Policy
	}
	return filepath.Join(copyDir, name)
}
