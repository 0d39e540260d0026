package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CreateUnnamed is [Create], but for as long as it can be the file has no name, so
// that nothing is left of it if the process is killed. That takes a file system
// that has such files, and /proc, by which they are named in the end.
func CreateUnnamed(dir, pattern string, mode fs.FileMode) (*File, error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, uint32(mode.Perm()))
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return Create(dir, pattern, mode)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	file := os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(descriptor(file)); err != nil {
		file.Close()
		return Create(dir, pattern, mode)
	}
	return &File{File: file, dir: dir, pattern: pattern}, nil
}

// descriptor is a path that leads to an open file.
func descriptor(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// link gives a file that has no name one.
func link(file *os.File, name string) error {
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(file), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &fs.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}
