package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Tree is a directory, such as the state directory of a gate, that belongs to one
// user and that others use too, above all root. Its owner could replace a file by a
// symbolic link, a named pipe or a device, so that root writes elsewhere or waits
// for ever. So the methods of a Tree follow no links below the directory, never leave
// it, and open only regular files. They follow the links that lead to the directory,
// which are the operator's.
//
// Names are relative to the directory. Each call opens the directory again, so that
// it may be removed and made again in between.
type Tree struct{ dir string }

// In returns the Tree of a directory, which need not exist.
func In(dir string) Tree { return Tree{filepath.Clean(dir)} }

// The reasons why a Tree refuses a file or the directory. Use errors.Is.
var (
	ErrLink   = errors.New("a symbolic link, which is not followed here: remove it")
	ErrKind   = errors.New("not a regular file")
	ErrShared = errors.New("everybody may write to this directory")

	errForeign = errors.New("a hard link to another user's file; remove it")
)

// IsTrap reports whether an error says that nobody should use a Tree, or a file in
// it.
func IsTrap(err error) bool {
	for _, trap := range []error{ErrLink, ErrKind, ErrShared, errForeign} {
		if errors.Is(err, trap) {
			return true
		}
	}
	return false
}

// Dir returns the directory.
func (t Tree) Dir() string { return t.dir }

// Path returns the path of a name.
func (t Tree) Path(name string) string { return filepath.Join(t.dir, name) }

// Name returns the name of a path, and whether the path lies in the Tree.
func (t Tree) Name(path string) (name string, ok bool) {
	rel, err := filepath.Rel(t.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// open opens the directory, and checks that not everybody may write to it: they
// could replace each file.
func (t Tree) open() (*os.Root, error) {
	root, err := os.OpenRoot(t.dir + string(filepath.Separator) + ".") // fails for a named pipe, instead of waiting for its other end
	if err != nil {
		return nil, t.failed("open", ".", err)
	}
	info, err := root.Stat(".")
	if err == nil && info.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("%w (mode %v), and so can decide which mail passes; run chmod 700 on it, or set [state] dir to another directory",
			ErrShared, info.Mode())
	}
	if err != nil {
		root.Close()
		return nil, t.failed("open", ".", err)
	}
	return root, nil
}

// failed returns an error with the path of a name.
func (t Tree) failed(op, name string, err error) error {
	var inPath *fs.PathError
	var inLink *os.LinkError
	switch {
	case errors.As(err, &inPath):
		err = inPath.Err
	case errors.As(err, &inLink):
		err = inLink.Err
	}
	return &fs.PathError{Op: op, Path: t.Path(name), Err: err}
}

// do opens the directory, checks the directories that lead to each name, and calls
// use.
func (t Tree) do(op string, use func(root *os.Root) error, names ...string) error {
	root, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if err := t.checkWay(root, name); err != nil {
			return err
		}
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = t.Path(name)
	}
	if err := Do(op, func() error { return use(root) }, paths...); err != nil {
		return t.failed(op, names[0], err)
	}
	return nil
}

// checkWay checks that only directories lead to a name, not links. A link that
// another process makes afterwards cannot lead out of the Tree: see [os.Root].
func (t Tree) checkWay(root *os.Root, name string) error {
	if !filepath.IsLocal(name) {
		return t.failed("open", name, errors.New("not a name in this directory"))
	}
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			err = ErrLink
		case !info.IsDir():
			err = syscall.ENOTDIR
		}
		if err != nil {
			return t.failed("open", name[:i], err)
		}
	}
	return nil
}

// Stat describes a file or directory. For a symbolic link the error is [ErrLink].
func (t Tree) Stat(name string) (info fs.FileInfo, err error) {
	return info, t.do("stat", func(root *os.Root) error {
		if info, err = root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = ErrLink
		}
		return err
	}, name)
}

// StatFile describes a regular file.
func (t Tree) StatFile(name string) (fs.FileInfo, error) {
	info, err := t.Stat(name)
	if err == nil {
		if err = checkFile(info); err != nil {
			err = t.failed("open", name, err)
		}
	}
	return info, err
}

// ReadDir reads a directory, sorted by name.
func (t Tree) ReadDir(name string) (entries []fs.DirEntry, err error) {
	return entries, t.do("read", func(root *os.Root) error {
		d, err := openDir(root, name)
		if err != nil {
			return err
		}
		defer d.Close()
		entries, err = d.ReadDir(-1)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return err
	}, name)
}

// openDir opens a directory after checkWay.
func openDir(root *os.Root, name string) (*os.File, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, ErrLink
	case !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	d, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	current, err := d.Stat()
	if err == nil && !os.SameFile(info, current) {
		err = errReplaced
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Rename moves a file or directory, and replaces a file that is there.
func (t Tree) Rename(from, to string) error {
	return t.do("rename", func(root *os.Root) error {
		if err := root.Rename(from, to); err != nil {
			if there, errThere := root.Lstat(to); errThere == nil && there.IsDir() {
				return fmt.Errorf("%s: %w but a directory: move it away", t.Path(to), ErrKind)
			}
			return err
		}
		return nil
	}, from, to)
}

// Link gives a file a second name, unless that is taken.
func (t Tree) Link(from, to string) error {
	return t.do("link", func(root *os.Root) error { return root.Link(from, to) }, from, to)
}

// Remove removes a file, a link or an empty directory.
func (t Tree) Remove(name string) error {
	return t.do("remove", func(root *os.Root) error { return root.Remove(name) }, name)
}

// RemoveAll removes a file, or a directory with its contents, if it exists.
func (t Tree) RemoveAll(name string) error {
	return t.do("remove", func(root *os.Root) error { return root.RemoveAll(name) }, name)
}

// Make makes the directory of the Tree and its missing parents.
func (t Tree) Make() error { return MakeDirs(t.dir) }

// MakeDirs makes a directory in the Tree and its missing parents, including that of
// the Tree, with mode 0700. If root makes them, they belong to the owner of the Tree.
func (t Tree) MakeDirs(name string) error {
	if err := t.Make(); err != nil {
		return err
	}
	if name == "." {
		return t.do("open", func(*os.Root) error { return nil }, ".")
	}
	if parent := path.Dir(name); parent != "." {
		if err := t.MakeDirs(parent); err != nil {
			return err
		}
	}
	made := false
	err := t.do("mkdir", func(root *os.Root) error {
		err := root.Mkdir(name, 0o700)
		if made = err == nil; !made && !errors.Is(err, fs.ErrExist) {
			return err
		}
		d, err := openDir(root, name)
		if err != nil {
			return err
		}
		defer d.Close()
		if made {
			return giveAway(t.dir, d.Chown)
		}
		return nil
	}, name)
	if err != nil || !made {
		return err
	}
	return t.Sync(path.Dir(name))
}

// MakeTemp makes a directory in dir, and returns its name: the pattern, with a unique
// string in place of the last "*".
func (t Tree) MakeTemp(dir, pattern string) (name string, err error) {
	name = path.Join(dir, temporaryName(pattern))
	return name, t.do("mkdir", func(root *os.Root) error { return root.Mkdir(name, 0o700) }, name)
}

// Sync writes the names in a directory to disk: see [SyncDir].
func (t Tree) Sync(name string) error {
	return t.do("sync", func(root *os.Root) error {
		d, err := openDir(root, name)
		if err != nil {
			return err
		}
		defer d.Close()
		return syncDir(d)
	}, name)
}
