package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// Create is the function [Create] for a directory of the Tree. [File.Commit] and
// the like take names in the Tree.
func (t Tree) Create(dir, pattern string, mode fs.FileMode) (*File, error) {
	name := path.Join(dir, temporaryName(pattern))
	f := &File{placer: inTree{t}, dir: dir, pattern: pattern, name: name}
	return f, t.do("create", func(root *os.Root) (err error) {
		f.File, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		return err
	}, name)
}

// WriteFile makes name a file with text, by way of a temporary file in dir, and
// replaces a file that is there. Its mode is 0600; if root writes it, it belongs to
// the owner of the Tree. When WriteFile returns, the file is on disk.
func (t Tree) WriteFile(name, dir, pattern string, text []byte) error {
	f, err := t.createWith(dir, pattern, text)
	if err != nil {
		return err
	}
	defer f.Discard()
	return f.Commit(name)
}

// WriteNew is WriteFile for a file that is never replaced, such as a secret. If
// several processes write it, the first one wins, and the others get no error.
func (t Tree) WriteNew(name, dir, pattern string, text []byte) error {
	f, err := t.createWith(dir, pattern, text)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.PlaceNew(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.SyncPlace(name)
}

// createWith returns a new file with text.
func (t Tree) createWith(dir, pattern string, text []byte) (*File, error) {
	f, err := t.Create(dir, pattern, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.GiveAway()
	}
	if err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// RemoveStale is the function [RemoveStale] for a directory of the Tree.
func (t Tree) RemoveStale(dir, prefix string, age time.Duration) error {
	entries, err := t.ReadDir(dir)
	return errors.Join(err, removeStale(entries, prefix, age, func(name string) error {
		return t.Remove(path.Join(dir, name))
	}))
}

// inTree places files in a Tree.
type inTree struct{ Tree }

func (t inTree) rename(from, to string) error   { return t.Rename(from, to) }
func (t inTree) linkName(from, to string) error { return t.Link(from, to) }
func (t inTree) remove(name string) error       { return t.Remove(name) }
func (t inTree) sync(dir string) error          { return t.Sync(dir) }
func (t inTree) ownerDir(string) string         { return t.dir }

func (t inTree) linkFile(file *os.File, name string) error {
	return t.do("link", func(root *os.Root) error {
		d, err := openDir(root, path.Dir(name))
		if err != nil {
			return err
		}
		defer d.Close()
		return linkAt(file, d, path.Base(name))
	}, name)
}
