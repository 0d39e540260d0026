package store

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// asStranger runs f without root's right to read everything. Only the calling
// thread's file access changes, so f must not leave it to other goroutines.
func asStranger(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setfsuid(0)
	f()
}
