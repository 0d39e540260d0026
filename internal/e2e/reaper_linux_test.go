package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// reaperVariable makes this test binary a reaper: it starts the program in its
// arguments, and tells of the end of every process that comes of it, in the form
// of the gate's log. It ends when the last of them has, with exit code 0 if all
// had. Its value is how many descriptors it passes on behind standard error.
const reaperVariable = "SPAMGATE_E2E_REAPER"

func init() {
	if files, ok := os.LookupEnv(reaperVariable); ok {
		if err := reap(files, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "reaper:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func reap(files string, argv []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	extra, err := strconv.Atoi(files)
	if err != nil {
		return err
	}
	os.Unsetenv(reaperVariable)
	attr := &syscall.ProcAttr{Env: os.Environ()}
	for fd := range 3 + extra {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return err
	}
	fmt.Printf("{\"msg\":\"started\",\"pid\":%d}\n", pid)
	failed := 0
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch err {
		case nil:
			fmt.Printf("{\"msg\":\"ended\",\"pid\":%d,\"code\":%d}\n", pid, status.ExitStatus())
			if status.ExitStatus() != 0 {
				failed++
			}
		case syscall.EINTR:
		case syscall.ECHILD:
			if failed > 0 {
				return fmt.Errorf("%d processes did not end well", failed)
			}
			return nil
		default:
			return err
		}
	}
}

// succession is a gate of several processes, of which one succeeds the other. The
// gate's process is the present one.
type succession struct {
	*gate
	handovers int
}

// launchReaped is launch for a succession.
func launchReaped(t testing.TB, dir string, extra []*os.File, env []string, argv ...string) *succession {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, argv...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", reaperVariable, len(extra)))
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g := &succession{gate: launch(t, dir, cmd)}
	g.kill = func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() {
		if t.Failed() { // who knows which of them still run
			g.kill()
		}
	})
	g.follow(g.waitRecord("started").pid())
	return g
}

// follow makes another process the present one.
func (g *succession) follow(pid int) {
	g.t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		g.t.Fatal(err)
	}
	g.process = p
}

func (r record) pid() int {
	pid, _ := r["pid"].(float64)
	return int(pid)
}
