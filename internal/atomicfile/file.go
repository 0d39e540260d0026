// Package atomicfile writes files atomically and durably: each appears whole or not at
// all, and a loss of power does not undo it. It also helps processes that share a
// directory, with locks that end with the process, owners, and the removal of
// temporary files. A [Tree] is a directory that a privileged process can use
// although its owner may set traps there.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is a new file that is not in its place yet. The caller must end it with
// Discard, which removes a file that did not get there.
type File struct {
	*os.File
	placer       placer
	dir, pattern string
	name         string // the temporary one; "" if it has none (Linux), or no longer
}

// placer moves files: by paths, or by names in a [Tree].
type placer interface {
	rename(from, to string) error
	linkName(from, to string) error
	linkFile(file *os.File, name string) error // of a file without a name
	remove(name string) error
	sync(dir string) error
	ownerDir(dir string) string // the directory whose owner gets what root makes in dir
}

// byPath places files at any path.
type byPath struct{}

func (byPath) rename(from, to string) error { return Rename(from, to) }
func (byPath) linkName(from, to string) error {
	return Do("link", func() error { return os.Link(from, to) }, from, to)
}
func (byPath) linkFile(f *os.File, name string) error {
	return Do("link", func() error { return linkAt(f, nil, name) }, name)
}
func (byPath) remove(name string) error   { return Remove(name) }
func (byPath) sync(dir string) error      { return SyncDir(dir) }
func (byPath) ownerDir(dir string) string { return dir }

// Create makes a file in dir. Its temporary name is the pattern, with a unique
// string in place of the last "*". The umask applies to the mode.
func Create(dir, pattern string, mode fs.FileMode) (*File, error) {
	name := filepath.Join(dir, temporaryName(pattern))
	var file *os.File
	err := Do("create", func() (err error) {
		file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		return err
	}, name)
	if err != nil {
		return nil, err
	}
	return &File{File: file, placer: byPath{}, dir: dir, pattern: pattern, name: name}, nil
}

func temporaryName(pattern string) string {
	prefix, suffix := pattern, ""
	if star := strings.LastIndexByte(pattern, '*'); star >= 0 {
		prefix, suffix = pattern[:star], pattern[star+1:]
	}
	return prefix + rand.Text() + suffix
}

// Write writes to the file.
func (f *File) Write(b []byte) (int, error) { return Write(f.File, b) }

// Sync writes the content of the file to disk.
func (f *File) Sync() error { return Sync(f.File) }

// Commit syncs the file and moves it to name, replacing a file that is there. When
// Commit returns, the file is on disk.
func (f *File) Commit(name string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Place(name); err != nil {
		return err
	}
	return f.SyncPlace(name)
}

// Place closes the file and moves it to name, replacing a file that is there. It is
// for callers that do something between the steps of Commit: they sync the file
// before, and call SyncPlace after it.
func (f *File) Place(name string) error {
	if f.name == "" {
		temporary := path.Join(f.dir, temporaryName(f.pattern))
		if err := f.placer.linkFile(f.File, temporary); err != nil {
			return err
		}
		f.name = temporary
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := f.placer.rename(f.name, name); err != nil {
		return err
	}
	f.name = ""
	return nil
}

// PlaceNew is Place, but replaces no file: if there is one the error is
// [fs.ErrExist]. The file stays open.
func (f *File) PlaceNew(name string) error {
	if f.name == "" {
		return f.placer.linkFile(f.File, name)
	}
	return f.placer.linkName(f.name, name)
}

// SyncPlace syncs the directory of a file that was moved to name.
func (f *File) SyncPlace(name string) error { return f.placer.sync(path.Dir(name)) }

// Discard closes the file, and removes its temporary name. If that fails,
// [RemoveStale] removes it later.
func (f *File) Discard() {
	_ = f.Close()
	if f.name != "" {
		_ = f.placer.remove(f.name)
	}
}

// WithoutPath returns the error without the path that packages os and fs add.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
