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

// A key that its owner alone may read, and the gate is somebody else.
func TestPermission(t *testing.T) {
	f := newFiles(t)
	f.write(t, newPair(t, oldName, nextYear))
	if err := os.Chmod(f.key, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		// Takes root's right to read everything from this thread alone.
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
