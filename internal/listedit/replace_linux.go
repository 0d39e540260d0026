package listedit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// createReplacement makes a file without a name, of which nothing stays if the
// process is killed while it writes. Some file systems have no such files.
func createReplacement(target string) (*replacement, error) {
	fd, err := unix.Open(filepath.Dir(target), unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return createNamed(target)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: filepath.Dir(target), Err: err}
	}
	file := os.NewFile(uintptr(fd), replacementName(target))
	if _, err := os.Stat(descriptor(file)); err != nil { // no /proc, so it could never be named
		file.Close()
		return createNamed(target)
	}
	return &replacement{file: file, target: target}, nil
}

// descriptor is a path that leads to an open file.
func descriptor(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// link gives a file that has no name one.
func link(file *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, descriptor(file), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// accessList is the attribute that holds a file's POSIX access control list.
const accessList = "system.posix_acl_access"

// keepExtended copies the extended attributes. Those that say who may read the
// file must be kept; of the others, such as a security module's labels, the new
// file may have its own.
func keepExtended(old, replacement *os.File) error {
	buf := make([]byte, 64<<10) // as much as the kernel ever gives
	n, err := unix.Flistxattr(int(old.Fd()), buf)
	if err != nil {
		return nil // the file system has none
	}
	value := make([]byte, 64<<10)
	for name := range strings.SplitSeq(strings.TrimRight(string(buf[:n]), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		size, err := unix.Fgetxattr(int(old.Fd()), name, value)
		if err == nil {
			err = unix.Fsetxattr(int(replacement.Fd()), name, value[:size], 0)
		}
		if err != nil && name == accessList {
			return fmt.Errorf("%w: its access control list: %w", ErrOwner, err)
		}
	}
	return nil
}
