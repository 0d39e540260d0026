// Package durable puts files in their places: each appears whole or not at all,
// and a loss of power does not undo it. Around that it has what several processes
// that share a directory need: locks that end with who has them, owners, and the
// removal of what a killed one left.
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
	dir, pattern string
	name         string // the temporary one; "" while it has none (Linux), or no longer
}

// Create makes a file in dir. Its temporary name is the pattern, with something
// that no other file has in the place of the last "*". The mode is before umask.
func Create(dir, pattern string, mode fs.FileMode) (*File, error) {
	name := temporaryName(dir, pattern)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &File{File: file, dir: dir, pattern: pattern, name: name}, nil
}

func temporaryName(dir, pattern string) string {
	prefix, suffix := pattern, ""
	if star := strings.LastIndexByte(pattern, '*'); star >= 0 {
		prefix, suffix = pattern[:star], pattern[star+1:]
	}
	return filepath.Join(dir, prefix+rand.Text()+suffix)
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
	return SyncDir(filepath.Dir(path))
}

// Place closes the file and moves it to path, in the place of one that is there.
// It is for who has something to do between the steps of Commit, and so leaves the
// others to the caller.
func (f *File) Place(path string) error {
	if f.name == "" {
		name := temporaryName(f.dir, f.pattern)
		if err := link(f.File, name); err != nil {
			return err
		}
		f.name = name
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.name, path); err != nil {
		return err
	}
	f.name = ""
	return nil
}

// PlaceNew is Place where nothing is to be replaced: if there is a file the error
// is [fs.ErrExist]. The file stays open.
func (f *File) PlaceNew(path string) error {
	if f.name == "" {
		return link(f.File, path)
	}
	return os.Link(f.name, path)
}

// Discard closes the file, and removes its temporary name. What can be done about
// an error is done by [RemoveStale], or by the caller with the same names.
func (f *File) Discard() {
	_ = f.Close()
	if f.name != "" {
		_ = os.Remove(f.name)
	}
}
