package harness

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// PrivateMounts gives the test's goroutine, and the programs that it starts, mounts of
// their own, which end with the test. It needs root.
func PrivateMounts(t *testing.T) {
	t.Helper()
	// The thread is never unlocked, so it ends with the goroutine.
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err != nil {
		t.Skipf("private mounts: %v (needs root, and a container that lets root mount)", err)
	}
}
