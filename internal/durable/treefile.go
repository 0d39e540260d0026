package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Create makes a file in a directory of the Tree: see the function. [File.Commit] and
// the like take names in the Tree.
func (t Tree) Create(dir, pattern string, mode fs.FileMode) (*File, error) {
	name := path.Join(dir, temporaryName(pattern))
	f := &File{at: inTree{t}, dir: dir, pattern: pattern, name: name}
	return f, t.do("create", func(root *os.Root) (err error) {
		f.File, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		return err
	}, name)
}

// WriteFile makes name a file that holds text, in the place of one that is there, by
// way of one in dir. It is for its owner alone, who is that of the Tree if root
// writes. It is on disk when WriteFile returns.
func (t Tree) WriteFile(name, dir, pattern string, text []byte) error {
	f, err := t.written(dir, pattern, text)
	if err != nil {
		return err
	}
	defer f.Discard()
	return f.Commit(name)
}

// WriteNew is WriteFile for a file that is never replaced, such as a secret: of
// several processes that write it at once, and of those that come later, it has what
// the first one wrote, and none of them an error.
func (t Tree) WriteNew(name, dir, pattern string, text []byte) error {
	f, err := t.written(dir, pattern, text)
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
	return t.Sync(path.Dir(name))
}

// written returns a new file that holds text.
func (t Tree) written(dir, pattern string, text []byte) (*File, error) {
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

// RemoveStale removes the files of a directory of the Tree whose names begin with the
// prefix and that nobody has written to for so long: see the function.
func (t Tree) RemoveStale(dir, prefix string, age time.Duration) error {
	entries, err := t.ReadDir(dir)
	return errors.Join(err, removeStale(entries, prefix, age, func(name string) error {
		return t.Remove(path.Join(dir, name))
	}))
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

// lockPatience is how long [Tree.Lock] waits. Who has a lock writes a small file, or
// packs an old version of a list.
const lockPatience = 30 * time.Second

// errLocked is a lock that is not to be had.
var errLocked = errors.New("another process has had this directory locked for 30 seconds: try again when it has finished")

// Lock waits for the lock of a directory of the Tree, which ends with the process if
// not before. It does not wait for ever: whoever may open the directory may lock it.
func (t Tree) Lock(name string) (unlock func(), err error) {
	const first, most = time.Millisecond, 200 * time.Millisecond
	late := time.Now().Add(lockPatience)
	for pause := time.Duration(first); ; pause = min(2*pause, most) {
		unlock, err = t.TryLock(name)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return unlock, err
		}
		if time.Now().After(late) {
			return nil, t.failed("lock", name, errLocked)
		}
		time.Sleep(pause)
	}
}

// TryLock is Lock, but where somebody else has the lock it is an error.
func (t Tree) TryLock(name string) (unlock func(), err error) {
	return unlock, t.do("lock", func(root *os.Root) error {
		d, err := openDir(root, name)
		if err != nil {
			return err
		}
		if err := tryLock(d); err != nil {
			d.Close()
			return err
		}
		unlock = func() { d.Close() }
		return nil
	}, name)
}

// inTree places files in a Tree.
type inTree struct{ Tree }

func (t inTree) rename(from, to string) error   { return t.Rename(from, to) }
func (t inTree) linkName(from, to string) error { return t.Link(from, to) }
func (t inTree) remove(name string) error       { return t.Remove(name) }
func (t inTree) join(dir, name string) string   { return path.Join(dir, name) }
func (t inTree) parent(name string) string      { return path.Dir(name) }
func (t inTree) sync(dir string) error          { return t.Sync(dir) }
func (t inTree) owned(string) string            { return t.dir }

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
