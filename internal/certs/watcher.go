package certs

import (
	"log/slog"
	"path/filepath"
	"slices"

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
	fs *fsnotify.Watcher // nil: none

	log     *slog.Logger
	refused map[string]bool // directories that cannot be watched, as was logged
}

func newWatcher(log *slog.Logger, deaf bool) *watcher {
	w := &watcher{log: log, refused: map[string]bool{}}
	if deaf {
		return w
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("no file system events, certificates are only polled", "error", err)
		return w
	}
	w.fs = fs
	return w
}

func (w *watcher) close() error {
	if w.fs == nil {
		return nil
	}
	return w.fs.Close()
}

// events is where the events come from. They are not looked at: whatever happens in
// these directories, it is cheap to look at two files once per debounce time.
func (w *watcher) events() <-chan fsnotify.Event {
	if w.fs == nil {
		return nil
	}
	return w.fs.Events
}

func (w *watcher) errors() <-chan error {
	if w.fs == nil {
		return nil
	}
	return w.fs.Errors
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
