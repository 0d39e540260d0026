package harness

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"syscall"
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

// ownMountsVariable is set in a process that [OwnMounts] has started.
const ownMountsVariable = "SPAMGATE_E2E_OWN_MOUNTS"

// OwnMounts runs the test again in a process whose mounts, all goroutines', are its own and end with
// it. It reports whether this is that process. It needs root.
func OwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMountsVariable) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2h") // go test ends this process before
	cmd.Env = append(os.Environ(), ownMountsVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Skipf("own mounts: %v (needs root, and a container that lets root mount)", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	default:
		t.Logf("%s", out)
	}
	return false
}
