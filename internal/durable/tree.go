package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Tree is a directory such as the state directory of a gate. It belongs to one user
// and is used by others too, by root above all: whoever owns it could put a symbolic
// link, a named pipe or a device in the place of a file, and have root write through
// it or wait for ever. So the methods of a Tree follow no link below the directory,
// leave it under no circumstances, and open nothing but regular files. (On the way to
// the directory links are followed: they are the operator's.)
//
// Names are relative to the directory, with slashes. The directory is opened anew
// for each call, so it may be removed and made again meanwhile.
type Tree struct{ dir string }

// In returns the Tree of a directory, which need not exist.
func In(dir string) Tree { return Tree{filepath.Clean(dir)} }

// Why a Tree refuses a file or itself. Use errors.Is.
var (
	ErrLink   = errors.New("a symbolic link, which is not followed here: remove it")
	ErrKind   = errors.New("not a regular file")
	ErrShared = errors.New("everybody may write to this directory")

	errForeign = errors.New("a hard link to another user's file; remove it")
)

// IsTrap reports whether an error is that a Tree, or something in it, is not to be
// used by anybody.
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
func (t Tree) Path(name string) string { return filepath.Join(t.dir, filepath.FromSlash(name)) }

// Name returns the name of a path, and whether the path lies in the Tree.
func (t Tree) Name(path string) (name string, ok bool) {
	rel, err := filepath.Rel(t.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// open opens the directory, and makes sure that not everybody may write to it: links
// and pipes apart, they could replace each file by one of their own.
func (t Tree) open() (*os.Root, fs.FileInfo, error) {
	root, err := os.OpenRoot(t.dir + string(filepath.Separator) + ".") // of a named pipe the end would be waited for
	var info fs.FileInfo
	if err == nil {
		if info, err = root.Stat("."); err == nil {
			err = notShared(info)
		}
		if err != nil {
			root.Close()
		}
	}
	if err != nil {
		return nil, nil, t.failed("open", ".", err)
	}
	return root, info, nil
}

// notShared is the error of a directory that everybody may write to.
func notShared(info fs.FileInfo) error {
	if sharedModes && info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%w (mode %v), and so can decide which mail passes; run chmod 700 on it, or set [state] dir to another directory",
			ErrShared, info.Mode())
	}
	return nil
}

// failed makes an error one about the path of a name.
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

// do calls use with the open directory, once it has made sure that the directories
// on the way to each name are none but directories.
func (t Tree) do(op string, use func(root *os.Root) error, names ...string) error {
	root, _, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if err := t.checkWay(root, name); err != nil {
			return err
		}
	}
	if err := use(root); err != nil {
		return t.failed(op, names[0], err)
	}
	return nil
}

// checkWay makes sure that what leads to a name are directories, and no links. That
// another process puts a link there afterwards leads nowhere out of the Tree: see
// [os.Root].
func (t Tree) checkWay(root *os.Root, name string) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
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

// checkFile is the error of what is not a regular file.
func checkFile(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return ErrLink
	default:
		return fmt.Errorf("%w but a %s: move it away", ErrKind, kindOf(mode))
	}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// openAttempts is how often a file is opened that is replaced meanwhile, as other
// processes do it by renaming.
const openAttempts = 20

// errReplaced is a file that was never the one that was looked at before.
var errReplaced = errors.New("replaced again and again while it is opened")

// openFile opens a regular file, or with os.O_CREATE makes it. It is looked at before
// it is opened, since opening a device may do something, and afterwards.
func (t Tree) openFile(name string, flag int, perm fs.FileMode) (file *os.File, made bool, err error) {
	root, dir, err := t.open()
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	if err := t.checkWay(root, name); err != nil {
		return nil, false, err
	}
	for range openAttempts {
		before, err := root.Lstat(name)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && flag&os.O_CREATE != 0:
			file, err = root.OpenFile(name, flag|os.O_EXCL|syscall.O_NONBLOCK, perm)
			if errors.Is(err, fs.ErrExist) {
				continue // somebody else was faster
			}
			if err != nil {
				return nil, false, t.failed("create", name, err)
			}
			return file, true, nil
		case err == nil:
			err = checkFile(before)
		}
		if err != nil {
			return nil, false, t.failed("open", name, err)
		}
		file, err = root.OpenFile(name, flag&^os.O_CREATE|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, t.failed("open", name, err)
		}
		info, err := file.Stat()
		if err == nil && os.SameFile(before, info) {
			if err = foreign(info, dir); err == nil {
				return file, false, nil
			}
		} else if err == nil {
			file.Close()
			continue
		}
		file.Close()
		return nil, false, t.failed("open", name, err)
	}
	return nil, false, t.failed("open", name, errReplaced)
}

// Open opens a file to be read.
func (t Tree) Open(name string) (*os.File, error) {
	file, _, err := t.openFile(name, os.O_RDONLY, 0)
	return file, err
}

// Append opens a file to be appended to. One that is missing is made, for its owner
// alone, who is that of the directory if root makes it.
func (t Tree) Append(name string) (*os.File, error) {
	file, made, err := t.openFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil && made {
		if err = giveAway(t.dir, file.Chown); err != nil {
			file.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// ReadFile reads a file of at most so many bytes.
func (t Tree) ReadFile(name string, most int64) ([]byte, error) {
	file, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	if err != nil {
		return nil, t.failed("read", name, err)
	}
	return text, nil
}

// Stat describes a file or directory. A symbolic link is an [ErrLink].
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
		sortEntries(entries)
		return err
	}, name)
}

// openDir opens a directory that checkWay has led to.
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
	now, err := d.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = errReplaced
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Rename moves a file or directory, in the place of a file that is there.
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

// Link gives a file a further name, unless that is taken.
func (t Tree) Link(from, to string) error {
	return t.do("link", func(root *os.Root) error { return root.Link(from, to) }, from, to)
}

// Remove removes a file, a link or an empty directory.
func (t Tree) Remove(name string) error {
	return t.do("remove", func(root *os.Root) error { return root.Remove(name) }, name)
}

// RemoveAll removes a file, or a directory with all that is in it. That it is missing
// is no error.
func (t Tree) RemoveAll(name string) error {
	return t.do("remove", func(root *os.Root) error { return root.RemoveAll(name) }, name)
}

// Make makes the directory of the Tree, and those above it that are missing.
func (t Tree) Make() error { return MakeDirs(t.dir) }

// MakeDirs makes a directory in the Tree, for its owner alone, and those above it
// that are missing, that of the Tree included. If root makes them they belong to
// whom that belongs to.
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

// MakeTemp makes a directory in another one, with something that no other name has in
// the place of the last "*" of the pattern. It returns its name.
func (t Tree) MakeTemp(dir, pattern string) (name string, err error) {
	name = path.Join(dir, temporaryName(pattern))
	return name, t.do("mkdir", func(root *os.Root) error { return root.Mkdir(name, 0o700) }, name)
}

// Sync puts the names in a directory on disk: see [SyncDir].
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
