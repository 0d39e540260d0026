package segment

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback makes the kernel start to write a part of a file to the disk, so that
// the disk works while the next part is made, and Sync has little left to do. It
// guarantees nothing.
func startWriteback(f *os.File, offset int64, size int) {
	// An error does not matter: Sync writes everything.
	_ = unix.SyncFileRange(int(f.Fd()), offset, int64(size), unix.SYNC_FILE_RANGE_WRITE)
}
