// Package dirwatch follows files by their paths: it reports when something may have
// changed on the way to one of them.
//
// It watches directories, never files: editors replace files, and a watch would
// stay with the one that is gone. [Find] says which directories those are: each one
// in which another file or link would lead elsewhere.
package dirwatch

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"spamgate/internal/atomicfile"
)

// Watcher reports that something may have changed on the way to files.
//
// It may miss changes: if the file system does not report them, if a directory
// cannot be watched, or if events were lost. Polling finds those. One goroutine at a
// time may call Plan, Forget and Settle.
type Watcher struct {
	log     *slog.Logger
	fs      *fsnotify.Watcher // nil: none
	rang    chan struct{}     // has room for one ring
	running sync.WaitGroup

	mu    sync.Mutex
	names map[string][]string // by directory, what matters in it: names and patterns
	first time.Time           // the first event that Take has not returned yet; zero: none

	resting []string // directories not to be watched until the next look

	// Of the goroutine that looks at the files.
	planned map[string][]string // what names will be
	refused map[string]bool     // directories that cannot be watched, as was logged
}

// New returns a Watcher, which Close ends. What is the word of the log for the
// files: "lists". Without events it reports nothing but what Ring does.
func New(log *slog.Logger, what string, events bool) *Watcher {
	w := &Watcher{
		log:     log,
		rang:    make(chan struct{}, 1),
		names:   map[string][]string{},
		planned: map[string][]string{},
		refused: map[string]bool{},
	}
	if !events {
		return w
	}
	err := atomicfile.Do("watch", func() (err error) { w.fs, err = fsnotify.NewWatcher(); return err })
	if err != nil {
		log.Warn("no file system events, "+what+" are only polled", "error", err)
		return w
	}
	w.running.Go(w.run)
	return w
}

// Close ends the watching.
func (w *Watcher) Close() error {
	if w.fs == nil {
		return nil
	}
	err := w.fs.Close()
	w.running.Wait()
	return err
}

// Rang has a value after each event that matters, and after Ring. Then Take says
// when the first one was.
func (w *Watcher) Rang() <-chan struct{} { return w.rang }

// Plan begins to watch for a name, or a pattern of names, in a directory, before the
// caller looks into it. Each look at the files plans anew, and then calls Settle or
// Forget.
//
// The directory is added each time, although it may be watched already: the one
// that was watched may have been replaced, and its watch be gone.
func (w *Watcher) Plan(dir, name string) {
	if w.fs == nil || slices.Contains(w.planned[dir], name) {
		return
	}
	_, again := w.planned[dir]
	w.planned[dir] = append(w.planned[dir], name)
	w.mu.Lock()
	if !slices.Contains(w.names[dir], name) {
		w.names[dir] = append(w.names[dir], name)
	}
	w.mu.Unlock()
	if again {
		return
	}
	switch err := w.fs.Add(dir); {
	case err == nil:
		delete(w.refused, dir)
	case !w.refused[dir]:
		w.refused[dir] = true
		w.log.Info("directory not watched, only polled", "dir", dir, "error", err)
	}
}

// Forget drops what was planned by a look that ends without Settle. The next one
// must plan it again: a directory that was replaced meanwhile has no watch.
func (w *Watcher) Forget() { clear(w.planned) }

// Settle ends the watches that were not planned again.
func (w *Watcher) Settle() {
	if w.fs == nil {
		return
	}
	w.mu.Lock()
	gone := w.names
	w.names, w.planned = w.planned, map[string][]string{}
	kept := w.names
	w.mu.Unlock()
	for dir := range gone {
		if _, ok := kept[dir]; !ok {
			w.fs.Remove(dir) // fails if it is gone already
			delete(w.refused, dir)
		}
	}
}

// run takes events until Close.
func (w *Watcher) run() {
	var quota quota
	events, errs := w.fs.Events, w.fs.Errors
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			now := time.Now()
			busy := !quota.take(now)
			if busy {
				w.rest(e.Name)
			}
			if busy || w.matters(e.Name) {
				w.Ring(now)
			}
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			// After ErrEventOverflow anything may have changed. A look is over
			// all files, so it is the answer to every error.
			w.log.Debug("file system events", "error", err)
			w.Ring(time.Now())
		}
	}
}

// rest has Take end the watch from which an event came, of a directory or of the one
// that path is in, until the next look adds it again. A log that is written beside the
// files, or in a directory above them, makes an event a line: a look now and then
// costs less.
func (w *Watcher) rest(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, dir := range []string{path, filepath.Dir(path)} {
		if _, ok := w.names[dir]; ok && !slices.Contains(w.resting, dir) {
			w.resting = append(w.resting, dir)
		}
	}
}

// matters reports whether a change of path may change a file.
func (w *Watcher) matters(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.names[path]; ok {
		return true // the directory itself has gone or moved
	}
	base := filepath.Base(path)
	return slices.ContainsFunc(w.names[filepath.Dir(path)], func(name string) bool {
		return name == base || matchName(name, base)
	})
}

// Ring notes an event.
func (w *Watcher) Ring(instant time.Time) {
	w.mu.Lock()
	if w.first.IsZero() {
		w.first = instant
	}
	w.mu.Unlock()
	select {
	case w.rang <- struct{}{}:
	default:
	}
}

// Take returns the time of the first event since the last call; zero if there was
// none. It ends the watches that are to rest: run must not, since fsnotify may wait
// for it to take an error, and holds what Remove needs.
func (w *Watcher) Take() time.Time {
	w.mu.Lock()
	instant, resting := w.first, w.resting
	w.first, w.resting = time.Time{}, nil
	w.mu.Unlock()
	for _, dir := range resting {
		w.fs.Remove(dir) // fails if it is gone already
	}
	return instant
}

// Loop calls look at intervals, and each time when a change was reported some time ago, so
// that its writer may be done, until stop is closed.
func (w *Watcher) Loop(stop <-chan struct{}, interval, debounce time.Duration, look func()) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	soon := false // the timer is set to debounce a reported change
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
			look()
			soon = false
			timer.Reset(interval)
		case <-w.Rang():
			w.Take() // a busy directory rests until the look
			if !soon {
				soon = true
				timer.Reset(debounce)
			}
		}
	}
}
