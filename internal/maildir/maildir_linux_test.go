package maildir

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWriteFails runs itself in a process with a limit on the size of files.
func TestWriteFails(t *testing.T) {
	const variable = "SPAMGATE_TEST_FILE_SIZE_LIMIT"
	if os.Getenv(variable) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestWriteFails$")
		command.Env = append(os.Environ(), variable+"=1")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // so that the write fails, and not the process
	limit := syscall.Rlimit{Cur: 100_000, Max: 100_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d := open(t, dir)

	f := create(t, d) // fails in a Write
	var err error
	for err == nil {
		_, err = f.Write(make([]byte, 10_000))
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("write: %v", err)
	}
	if err := f.Commit(); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("commit after a failed write: %v", err)
	}

	f = create(t, d) // fails in the flush of Commit
	if _, err := f.Write(make([]byte, bufferSize)); err != nil {
		t.Error(err)
	}
	if _, err := f.Write(make([]byte, bufferSize-1)); err != nil {
		t.Error(err)
	}
	if err := f.Commit(); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("commit: %v", err)
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

// TestSyncFails makes the directory new unreadable, so that syncing it fails after the
// rename: the message must be removed again.
func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	if err := os.Chmod(filepath.Join(dir, "new"), 0o300); err != nil {
		t.Fatal(err)
	}
	withoutPrivileges(t, func() {
		f, err := d.Create()
		if err != nil {
			t.Error(err)
			return
		}
		if err := f.Commit(); !errors.Is(err, syscall.EACCES) {
			t.Errorf("commit: %v", err)
		}
	})
	if err := os.Chmod(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

// withoutPrivileges runs f on a thread without capabilities, so that file modes apply
// to root too. The thread ends with f.
func withoutPrivileges(t *testing.T, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}
