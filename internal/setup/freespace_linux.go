package setup

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace returns how many bytes this process may still write to a file's file system, or
// -1 if that is not known.
func freeSpace(f *os.File) int64 {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Frsize)
}
