package main

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPassedSocketStaysNonBlocking passes a socket to another process while this
// one goes on accepting from it. Both share its flags: were it set to block, a
// thread would hang in each accept that the other process wins, and Close with it.
func TestPassedSocketStaysNonBlocking(t *testing.T) {
	l := listenTCP(t, "127.0.0.1:0")
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	n, err := startSuccessor(program, []heldSocket{{"127.0.0.1:0", l}})
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
