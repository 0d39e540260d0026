package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CreateUnnamed is [Create], but the file has no name until it is placed, so that
// nothing remains of it if the process is killed. If the file system lacks such
// files, or /proc is missing, which names them in the end, it is the same.
func CreateUnnamed(dir, pattern string, mode fs.FileMode) (*File, error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, uint32(mode.Perm()))
	switch {
	case noUnnamed(err):
		return Create(dir, pattern, mode)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	file := os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(descriptor(file)); err != nil {
		file.Close()
		return Create(dir, pattern, mode)
	}
	return &File{File: file, placer: byPath{}, dir: dir, pattern: pattern}, nil
}

// CreateUnnamed is the function [CreateUnnamed] for a directory of the Tree.
func (t Tree) CreateUnnamed(dir, pattern string, mode fs.FileMode) (*File, error) {
	f := &File{placer: inTree{t}, dir: dir, pattern: pattern}
	err := t.do("create", func(root *os.Root) error {
		d, err := openDir(root, dir)
		if err != nil {
			return err
		}
		defer d.Close()
		fd, err := unix.Openat(int(d.Fd()), ".", unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, uint32(mode.Perm()))
		if err != nil {
			return err
		}
		f.File = os.NewFile(uintptr(fd), t.Path(dir))
		return nil
	}, dir)
	if err == nil {
		if _, err := os.Stat(descriptor(f.File)); err == nil {
			return f, nil
		}
		f.File.Close()
	} else if !noUnnamed(err) {
		return nil, err
	}
	return t.Create(dir, pattern, mode)
}

// noUnnamed reports whether an error says that the file system has no unnamed files.
func noUnnamed(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL)
}

// descriptor returns a path that leads to an open file.
func descriptor(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// linkAt names an unnamed file: in an open directory, or, if dir is nil, by a path.
func linkAt(file, dir *os.File, name string) error {
	pos := unix.AT_FDCWD
	if dir != nil {
		pos = int(dir.Fd())
	}
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(file), pos, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &fs.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}
