package listedit

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// accessList is the attribute that holds a file's POSIX access control list.
const accessList = "system.posix_acl_access"

// keepExtended copies the extended attributes. It must copy those that say who may read
// the file; of others, such as a security module's labels, the new file may have its
// own.
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

// changeTime returns when anything about the file was last changed. Programs can
// set the modification time back, but not this one.
func changeTime(info fs.FileInfo) time.Time {
	return time.Unix(info.Sys().(*syscall.Stat_t).Ctim.Unix())
}
