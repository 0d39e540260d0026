package certs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A key that only another user may read.
func TestPermission(t *testing.T) {
	f := newFiles(t)
	f.write(t, newPair(t, oldName, nextYear))
	if err := os.Chmod(f.key, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		// Removes root's right to read everything, only from this thread.
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	_, err := readFile(f.key)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "key.pem") || !strings.Contains(err.Error(), "let the gate's user") {
		t.Error(err)
	}
}
