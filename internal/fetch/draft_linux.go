package fetch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// createDraft makes a file without a name where the file system has such files,
// and /proc is there, by which it can be named later.
func createDraft(dir string) (file *os.File, name string, err error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return createNamed(dir)
	case err != nil:
		return nil, "", &os.PathError{Op: "open", Path: dir, Err: err}
	}
	file = os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(descriptor(file)); err != nil {
		file.Close()
		return createNamed(dir)
	}
	return file, "", nil
}

// descriptor is a path that leads to an open file.
func descriptor(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// link gives a file that has no name one.
func link(file *os.File, name string) error {
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(file), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}
