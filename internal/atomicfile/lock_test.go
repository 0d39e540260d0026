package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// lockerDir is a variable that makes this test binary lock a directory until its
// standard input ends.
const lockerDir = "ATOMICFILE_TEST_LOCK"

func TestMain(m *testing.M) {
	dir := os.Getenv(lockerDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	unlock, err := In(dir).Lock(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("locked")
	io.Copy(io.Discard, os.Stdin)
	unlock()
}

// locker starts such a process, and waits until it has the lock.
func locker(t *testing.T, dir string) (process *exec.Cmd, end io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockerDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd, in
}

// One process at a time has the lock, which ends with the process.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	other, _ := locker(t, dir)
	if _, err := In(dir).TryLock("."); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("while another process has it: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	other.Wait()
	unlock, err := In(dir).TryLock(".")
	if err != nil {
		t.Fatalf("of a killed process: %v", err)
	}
	if _, err := In(dir).TryLock("."); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("while this process has it: %v", err)
	}
	unlock()

	_, end := locker(t, dir)
	locked := make(chan error)
	go func() {
		unlock, err := In(dir).Lock(".")
		if err == nil {
			unlock()
		}
		locked <- err
	}()
	end.Close()
	if err := <-locked; err != nil {
		t.Errorf("after the wait: %v", err)
	}
	for name, lock := range map[string]func(string) (func(), error){"Lock": In(dir).Lock, "TryLock": In(dir).TryLock} {
		if _, err := lock("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a missing directory: %v", name, err)
		}
	}
}
