package hits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"spamgate/internal/atomicfile"
)

// load reads a list's file, if there is a valid one.
func (l *Log) load(name string) (*Snapshot, bool) {
	if l.options.Name == nil {
		return nil, false
	}
	s, err := Read(l.options.Dir, l.options.Name(name), l.key)
	switch {
	case err == nil:
		if s.Since.After(l.options.now()) { // a clock was wrong
			s.Since = l.options.now().UTC().Truncate(time.Second)
		}
		return s, true
	case errors.Is(err, fs.ErrNotExist):
	default:
		l.log.Warn("hits cannot be read, recording starts again", "list", name, "error", err)
	}
	return nil, false
}

// save writes a list's file. During a handover another process may write it, too: so
// save reads it again, under a lock, and writes the matches of both.
func (l *Log) save(name string, x *list) (err error) {
	tree, file := l.tree(), l.options.Name(name)
	if !x.dirty.Swap(false) && x.today.Load() == x.saved && sameFile(tree, file, x.file) {
		return nil
	}
	defer func() {
		if err != nil {
			x.dirty.Store(true)
			err = fmt.Errorf("writing the hits of list %q: %w", name, err)
		}
	}()
	dir := path.Dir(file)
	if err := tree.MakeDirs(dir); err != nil {
		return err
	}
	unlock, err := tree.Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()

	today := DayOf(l.options.now())
	if s, ok := l.load(name); ok {
		x.merge(s, today)
	}
	s := x.snapshot(today)
	if err := tree.WriteFile(file, dir, ".hits-*", s.encode(l.key)); err != nil {
		return err
	}
	x.saved = s.today
	x.file = fileInfo(tree, file)
	return nil
}

// fileInfo returns the FileInfo of a file, or nil if there is none.
func fileInfo(tree atomicfile.Tree, name string) fs.FileInfo {
	info, err := tree.StatFile(name)
	if err != nil {
		return nil
	}
	return info
}

// sameFile reports whether nobody has written the file since was.
func sameFile(tree atomicfile.Tree, name string, was fs.FileInfo) bool {
	info := fileInfo(tree, name)
	if info == nil || was == nil {
		return info == was
	}
	return os.SameFile(info, was) && info.ModTime().Equal(was.ModTime())
}
