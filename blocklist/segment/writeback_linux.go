package segment

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback has the kernel begin to write a part of a file to disk, so that
// the disk works while the next part is made and Sync finds little left to do. It
// promises nothing: that is for Sync.
func startWriteback(f *os.File, offset int64, size int) {
	// Whatever the error is, Sync writes all.
	_ = unix.SyncFileRange(int(f.Fd()), offset, int64(size), unix.SYNC_FILE_RANGE_WRITE)
}
