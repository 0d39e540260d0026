package certs

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher tells when something may have changed in the directories of files. It
// watches directories, never files: renewing replaces a file, or the symbolic
// link to it, and a watch would stay with what is gone. A file that is reached
// through a link is watched at both ends.
//
// It may miss changes, as of a link in the middle or a directory further up.
// Polling finds those.
type watcher struct {
	fs   *fsnotify.Watcher // nil: none
	rang chan struct{}     // has room for one ring

	running sync.WaitGroup

	log     *slog.Logger
	refused map[string]bool // directories that cannot be watched, as was logged
}

func newWatcher(log *slog.Logger, deaf bool) *watcher {
	w := &watcher{log: log, rang: make(chan struct{}, 1), refused: map[string]bool{}}
	if deaf {
		return w
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("no file system events, certificates are only polled", "error", err)
		return w
	}
	w.fs = fs
	w.running.Go(w.run)
	return w
}

func (w *watcher) close() error {
	if w.fs == nil {
		return nil
	}
	err := w.fs.Close()
	w.running.Wait()
	return err
}

// run takes events until close. They are not looked at: whatever happens in these
// directories, it is cheap to look at two files once per debounce time. It is apart
// from the goroutine that looks, since fsnotify may wait for an error to be taken, and
// holds what rest and follow need.
func (w *watcher) run() {
	events, errs := w.fs.Events, w.fs.Errors
	for events != nil || errs != nil {
		var ok bool
		select {
		case _, ok = <-events:
			if !ok {
				events = nil
			}
		case _, ok = <-errs: // of lost events: anything may have changed
			if !ok {
				errs = nil
			}
		}
		if ok {
			w.ring()
		}
	}
}

// ring says that something has happened.
func (w *watcher) ring() {
	select {
	case w.rang <- struct{}{}:
	default:
	}
}

// rest ends all watches until follow. A log that is written beside the files makes
// an event a line, and the look that follows the first one sees to all of them.
func (w *watcher) rest() {
	for _, dir := range w.fs.WatchList() {
		w.fs.Remove(dir) // fails if it is gone already
	}
}

// follow watches the directories where the files are now, and no others. They are
// added each time, although most are watched already: one may have been replaced,
// and its watch be gone.
func (w *watcher) follow(files ...string) {
	if w.fs == nil {
		return
	}
	var dirs []string
	for _, file := range files {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
			dirs = append(dirs, dir)
		}
		if file, err := filepath.EvalSymlinks(file); err == nil {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	for _, dir := range dirs {
		switch err := w.fs.Add(dir); {
		case err == nil:
			delete(w.refused, dir)
		case !w.refused[dir]:
			w.refused[dir] = true
			w.log.Info("directory not watched, only polled", "dir", dir, "error", err)
		}
	}
	for _, dir := range w.fs.WatchList() {
		if !slices.Contains(dirs, dir) {
			w.fs.Remove(dir) // fails if it is gone already
		}
	}
}
