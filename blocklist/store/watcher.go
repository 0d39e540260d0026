package store

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher rings when something may have changed on the way to a list's files.
// It watches directories, never files: editors replace files, and a watch would
// stay with the one that is gone.
//
// It may miss changes, where the file system tells of none, a watch cannot be
// had, or events were lost. Polling finds those.
type watcher struct {
	log  *slog.Logger
	fs   *fsnotify.Watcher // nil: none
	rang chan struct{}     // has room for one ring; then see take

	mu    sync.Mutex
	names map[string][]string // by directory, what matters in it: names and patterns
	first time.Time           // the first event that take has not given yet; zero: none

	resting []string // directories not to be watched until the next look

	// Of who looks at files, one at a time.
	planned map[string][]string // what names will be
	refused map[string]bool     // directories that cannot be watched, as was logged
}

func newWatcher(log *slog.Logger, events bool) *watcher {
	w := &watcher{
		log:     log,
		rang:    make(chan struct{}, 1),
		names:   map[string][]string{},
		planned: map[string][]string{},
		refused: map[string]bool{},
	}
	if !events {
		return w
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("no file system events, lists are only polled", "error", err)
		return w
	}
	w.fs = fs
	return w
}

// close ends run.
func (w *watcher) close() error {
	if w.fs == nil {
		return nil
	}
	return w.fs.Close()
}

// plan begins to watch for a name in a directory, before it is looked into. Each
// look plans anew and then calls settle.
//
// The directory is added each time, although it may be watched already: the one
// that was watched may have been replaced, and its watch be gone.
func (w *watcher) plan(dir, name string) {
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

// forget drops what was planned by a look that ends without settle. The next one
// must plan it again: a directory that was replaced meanwhile has no watch.
func (w *watcher) forget() { clear(w.planned) }

// settle ends the watches that were not planned again.
func (w *watcher) settle() {
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

// run takes events until close.
func (w *watcher) run() {
	if w.fs == nil {
		return
	}
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
				w.ring(now)
			}
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			// After ErrEventOverflow anything may have changed. A look is over
			// all files, so it is the answer to every error.
			w.log.Debug("file system events", "error", err)
			w.ring(time.Now())
		}
	}
}

// rest has the watch ended from which an event came, of a directory or of the one
// that path is in, until the next look adds it again. A log that is written beside the
// lists, or in a directory above them, makes an event a line: a look now and then
// costs less.
func (w *watcher) rest(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, dir := range []string{path, filepath.Dir(path)} {
		if _, ok := w.names[dir]; ok && !slices.Contains(w.resting, dir) {
			w.resting = append(w.resting, dir)
		}
	}
}

// matters reports whether a change of path may change a list.
func (w *watcher) matters(path string) bool {
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

// ring notes an event.
func (w *watcher) ring(at time.Time) {
	w.mu.Lock()
	if w.first.IsZero() {
		w.first = at
	}
	w.mu.Unlock()
	select {
	case w.rang <- struct{}{}:
	default:
	}
}

// take gives the time of the first event since the last call; zero if there was
// none. It ends the watches that are to rest: run must not, since fsnotify may wait
// for it to take an error, and holds what Remove needs.
func (w *watcher) take() time.Time {
	w.mu.Lock()
	at, resting := w.first, w.resting
	w.first, w.resting = time.Time{}, nil
	w.mu.Unlock()
	for _, dir := range resting {
		w.fs.Remove(dir) // fails if it is gone already
	}
	return at
}
