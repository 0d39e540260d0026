package hits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"spamgate/internal/durable"
)

// load reads a list's file, if there is one that can be used.
func (l *Log) load(name string) (*Snapshot, bool) {
	if l.options.Path == nil {
		return nil, false
	}
	s, err := Read(l.options.Path(name), l.key)
	switch {
	case err == nil:
		if s.Since.After(l.options.now()) { // a clock was wrong
			s.Since = l.options.now().UTC().Truncate(time.Second)
		}
		return s, true
	case errors.Is(err, fs.ErrNotExist):
	default:
		l.log.Warn("what is known of hits cannot be read, recording begins anew", "list", name, "error", err)
	}
	return nil, false
}

// save writes a list's file. Another process may do so, too, while one takes over
// from the other: so the file is read again, under a lock, and what both know is
// written.
func (l *Log) save(name string, x *list) (err error) {
	path := l.options.Path(name)
	if !x.dirty.Swap(false) && x.today.Load() == x.saved && sameFile(path, x.file) {
		return nil
	}
	defer func() {
		if err != nil {
			x.dirty.Store(true)
			err = fmt.Errorf("writing the hits of list %q: %w", name, err)
		}
	}()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unlock, err := durable.LockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()

	today := DayOf(l.options.now())
	if s, ok := l.load(name); ok {
		x.merge(s, today)
	}
	s := x.snapshot(today)
	if err := durable.WriteFile(path, dir, ".hits-*", s.encode(l.key)); err != nil {
		return err
	}
	x.saved = s.today
	x.file = fileInfo(path)
	return nil
}

// fileInfo describes a file, nil where there is none.
func fileInfo(path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// sameFile reports whether a file is the one that was described: nobody has
// written another since.
func sameFile(path string, was fs.FileInfo) bool {
	now := fileInfo(path)
	if now == nil || was == nil {
		return now == was
	}
	return os.SameFile(now, was) && now.ModTime().Equal(was.ModTime())
}
