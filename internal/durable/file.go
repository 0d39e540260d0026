// Package durable puts files in their places: each appears whole or not at all,
// and a loss of power does not undo it. Around that it has what several processes
// that share a directory need: locks that end with who has them, owners, and the
// removal of what a killed one left. A [Tree] is a directory in which nobody can
// lay a trap for those who do this with more rights.
package durable

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is a new file on its way to its place. It is ended by Discard, which
// leaves nothing of a file that did not get there.
type File struct {
	*os.File
	at           placer
	dir, pattern string
	name         string // the temporary one; "" while it has none (Linux), or no longer
}

// placer is what moves files: by paths, or by names in a [Tree].
type placer interface {
	rename(from, to string) error
	linkName(from, to string) error
	linkFile(file *os.File, name string) error // of a file without a name
	remove(name string) error
	sync(dir string) error
	join(dir, name string) string
	parent(name string) string
	owned(dir string) string // the path of the directory whose owner gets what root makes in dir
}

// byPath places files wherever a path leads.
type byPath struct{}

func (byPath) rename(from, to string) error           { return os.Rename(from, to) }
func (byPath) linkName(from, to string) error         { return os.Link(from, to) }
func (byPath) linkFile(f *os.File, name string) error { return linkAt(f, nil, name) }
func (byPath) remove(name string) error               { return os.Remove(name) }
func (byPath) sync(dir string) error                  { return SyncDir(dir) }
func (byPath) join(dir, name string) string           { return filepath.Join(dir, name) }
func (byPath) parent(name string) string              { return filepath.Dir(name) }
func (byPath) owned(dir string) string                { return dir }

// Create makes a file in dir. Its temporary name is the pattern, with something
// that no other file has in the place of the last "*". The mode is before umask.
func Create(dir, pattern string, mode fs.FileMode) (*File, error) {
	name := filepath.Join(dir, temporaryName(pattern))
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &File{File: file, at: byPath{}, dir: dir, pattern: pattern, name: name}, nil
}

func temporaryName(pattern string) string {
	prefix, suffix := pattern, ""
	if star := strings.LastIndexByte(pattern, '*'); star >= 0 {
		prefix, suffix = pattern[:star], pattern[star+1:]
	}
	return prefix + rand.Text() + suffix
}

// Commit syncs the file and moves it to path, in the place of one that is there.
// It is on disk when Commit returns.
func (f *File) Commit(path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Place(path); err != nil {
		return err
	}
	return f.at.sync(f.at.parent(path))
}

// Place closes the file and moves it to path, in the place of one that is there.
// It is for who has something to do between the steps of Commit, and so leaves the
// others to the caller.
func (f *File) Place(path string) error {
	if f.name == "" {
		name := f.at.join(f.dir, temporaryName(f.pattern))
		if err := f.at.linkFile(f.File, name); err != nil {
			return err
		}
		f.name = name
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := f.at.rename(f.name, path); err != nil {
		return err
	}
	f.name = ""
	return nil
}

// PlaceNew is Place where nothing is to be replaced: if there is a file the error
// is [fs.ErrExist]. The file stays open.
func (f *File) PlaceNew(path string) error {
	if f.name == "" {
		return f.at.linkFile(f.File, path)
	}
	return f.at.linkName(f.name, path)
}

// SyncPlace puts the name of a file that was moved to path on disk.
func (f *File) SyncPlace(path string) error { return f.at.sync(f.at.parent(path)) }

// Discard closes the file, and removes its temporary name. What can be done about
// an error is done by [RemoveStale], or by the caller with the same names.
func (f *File) Discard() {
	_ = f.Close()
	if f.name != "" {
		_ = f.at.remove(f.name)
	}
}

// SameFile reports whether two paths lead to one file.
func SameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
