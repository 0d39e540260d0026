package harness

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// reaperVariable makes this test program a reaper. A reaper starts the program in its
// arguments and logs the end of every process that comes of it, in the format of the
// gate's log. When the last process has ended, the reaper ends, with exit code 0 if all
// processes ended with 0. The variable's value is the number of descriptors after
// standard error that the reaper passes on.
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

// reap runs the reaper.
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

// A Succession is a gate that hands over from one process to the next. The process of
// its Gate is the current one.
type Succession struct {
	*Gate
	handovers int
}

// LaunchSuccession is [Launch] for a succession.
func LaunchSuccession(t testing.TB, dir string, extra []*os.File, env []string, argv ...string) *Succession {
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
	g := &Succession{Gate: Launch(t, dir, cmd)}
	g.Kill = func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() {
		if t.Failed() { // it is not known which of them still run
			g.Kill()
		}
	})
	g.Follow(g.WaitRecord("started").PID())
	return g
}

// Follow makes another process the current one.
func (g *Succession) Follow(pid int) {
	g.T.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		g.T.Fatal(err)
	}
	g.Process = p
}

// HandOver has the gate hand over to a new process, and follows that one.
func (g *Succession) HandOver() {
	g.T.Helper()
	g.Signal(syscall.SIGUSR2)
	g.handovers++
	g.Follow(g.WaitNth(g.handovers, "handed over").PID())
}

// WaitNth waits for the n-th line of the log with that message text.
func (g *Succession) WaitNth(n int, msg string) Record {
	g.T.Helper()
	return ParseRecord(g.Log.Wait(fmt.Sprintf("%d lines with %q", n, msg), func(line string) bool {
		if ParseRecord(line).Matches(msg, nil) {
			n--
			return n == 0
		}
		return false
	}))
}

// WantEnded checks that n processes have ended, each with exit code 0.
func (g *Succession) WantEnded(n int) {
	g.T.Helper()
	ended := g.Records("ended")
	if len(ended) != n {
		g.T.Errorf("%d processes have ended, want %d", len(ended), n)
	}
	for _, r := range ended {
		if r["code"] != 0.0 {
			g.T.Errorf("process %d has ended with exit code %v", r.PID(), r["code"])
		}
	}
}

// PID returns the process ID in a line of the log.
func (r Record) PID() int {
	pid, _ := r["pid"].(float64)
	return int(pid)
}
