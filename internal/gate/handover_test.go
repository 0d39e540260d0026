package gate

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/admin"
	"spamgate/internal/socket"
)

// TestPassedSocketStaysNonBlocking passes a socket to another process while this
// one goes on accepting from it. Both share its flags: were it set to block, a
// thread would hang in each accept that the other process wins, and Close with it.
func TestPassedSocketStaysNonBlocking(t *testing.T) {
	l := func() *net.TCPListener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l.(*net.TCPListener)
	}()
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	n, err := startSuccessor(t.Context(), readyLimit, program, []socket.Inheritable{{Key: "127.0.0.1:0", Socket: l}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-n.done; err == nil {
		t.Error("it serves, and never said so")
	}
	<-n.gone
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Errorf("flags %#o, %v", flags, err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSuccessorMayEnd: one that has closed its end of the pipe is on its way out,
// and is let go there, since its exit code says more than that it was killed.
func TestSuccessorMayEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	cmd := exec.Command("/bin/sh", "-c", "read line; exit 2")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &successor{cmd: cmd, done: make(chan error, 1), gone: make(chan struct{})}
	failure, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	told.Close()
	go n.watch(t.Context(), r, failure)
	if _, err := stdin.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-n.done; err == nil || !strings.HasPrefix(err.Error(), "exit status 2") {
		t.Errorf("%v, want exit status 2", err)
	}
	<-n.gone
}

// TestWithRemedy starts files that are not whole programs: the error says what to do. Other
// ends are not taken for that.
func TestWithRemedy(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want bool
	}{
		"empty":      {"", 0o755, true},
		"text":       {"hello\n", 0o755, true},
		"plain":      {"#!/bin/sh\n", 0o644, true},
		"crash":      {"#!/bin/sh\nkill -SEGV $$\n", 0o755, true},
		"killed":     {"#!/bin/sh\nkill -KILL $$\n", 0o755, false},
		"exits":      {"#!/bin/sh\nexit 2\n", 0o755, false},
		"terminated": {"#!/bin/sh\nkill $$\n", 0o755, false},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		err := exec.Command(path).Run()
		if err == nil {
			t.Fatalf("%s: it has not failed", name)
		}
		got := withRemedy(err, path)
		if strings.Contains(got.Error(), path+" is not a whole program") != c.want || !errors.Is(got, err) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); !strings.Contains(withRemedy(err, "missing").Error(), "install it again") {
		t.Errorf("a missing file: %v", withRemedy(err, "missing"))
	}
}

// TestHandoverUnderWay: while a successor starts, neither a signal nor a command starts another one.
func TestHandoverUnderWay(t *testing.T) {
	first := &successor{cmd: &exec.Cmd{Process: &os.Process{Pid: 7}}}
	s := &supervisor{gate: &gate{log: slog.New(slog.DiscardHandler)}, successor: first}
	s.startHandover(nil)
	done := make(chan handoverResult, 1)
	s.startHandover(&handoverRequest{done: done})
	if r := <-done; !errors.Is(r.err, admin.ErrHandingOver) {
		t.Errorf("the command: %v", r.err)
	}
	if s.successor != first || s.handOver {
		t.Error("another successor is started, or will be")
	}
}
