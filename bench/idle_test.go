package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startScript starts a shell as a contender.
func startScript(t *testing.T, name, script string) target {
	t.Helper()
	p, err := startProcess(t.TempDir(), name, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	if clockOf(os.Getpid()) == 0 { // a process that has just begun may have used none
		t.Skip("this system does not tell the processor time of other processes")
	}
	return target{name: name, server: p}
}

const endless = "while :; do :; done"

// works lets an endless script use some processor time, and then stops it again.
func (to target) works(t *testing.T) {
	t.Helper()
	pid := to.server.cmd.Process.Pid
	to.server.cmd.Process.Signal(syscall.SIGCONT)
	for start := clockOf(pid); clockOf(pid) < start+100*time.Millisecond; {
		select {
		case <-to.server.ended:
			t.Fatalf("%s has ended", to.name)
		case <-time.After(time.Millisecond):
		}
	}
	to.server.cmd.Process.Signal(syscall.SIGSTOP)
}

// TestAlone has one contender work, which is what is measured; and then another,
// which makes the run invalid.
func TestAlone(t *testing.T) {
	measured, other := startScript(t, "measured", endless), startScript(t, "other", endless)
	s := &servers{targets: []target{{name: direct}, measured, other}, idle: map[string]idleness{}}
	for _, to := range s.targets[1:] {
		to.server.cmd.Process.Signal(syscall.SIGSTOP)
	}
	cpu, err := s.alone(context.Background(), measured, func() error { measured.works(t); return nil })
	if err != nil || cpu.all < 100*time.Millisecond {
		t.Errorf("%v of processor time, error %v", cpu, err)
	}
	if i := s.idle["other"]; i.Seconds <= 0 || i.CPU > idleFloor.Seconds() {
		t.Errorf("the other: %+v", i)
	}
	_, err = s.alone(context.Background(), measured, func() error { other.works(t); return nil })
	if err == nil || !strings.Contains(err.Error(), "other, which had nothing to do, used ") {
		t.Errorf("the other worked, error %v", err)
	}
	// Directly, nothing stands between: then nobody may work.
	if _, err = s.alone(context.Background(), s.targets[0], func() error { measured.works(t); return nil }); err == nil {
		t.Error("nobody was measured and one worked: no error")
	}
}

// TestChildrenCount compares a process that leaves its work to others, one that
// has ended and one that goes on, with them.
func TestChildrenCount(t *testing.T) {
	parent := startScript(t, "parent", "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo ended; (echo begun; "+endless+") & wait")
	waitLog := func(text string) {
		t.Helper()
		for !strings.Contains(parent.server.log(), text) {
			select {
			case <-parent.server.ended:
				t.Fatalf("ended: %s", parent.server.log())
			case <-time.After(time.Millisecond):
			}
		}
	}
	waitLog("begun")
	pid := parent.server.cmd.Process.Pid
	children := readProcesses().children[pid]
	if len(children) != 1 {
		t.Fatalf("children %v", children)
	}
	defer syscall.Kill(children[0], syscall.SIGKILL)
	for clockOf(children[0]) < 20*time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	table := readProcesses()
	if table.ended[pid] < 20*time.Millisecond {
		t.Errorf("the child that has ended: %v", table.ended[pid])
	}
	if got, least := table.cpu(pid).all, table.ended[pid]+20*time.Millisecond; got < least {
		t.Errorf("%v of processor time in all, at least %v wanted", got, least)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 7 1 1 0 -1 4194560 100 200 0 0 5 6 70 8 20 0 1 0 100 1000 10"
	for _, name := range []string{"(sh)", "(a b)", "(a) R 9 (b)"} {
		s, ok := parseStat("42 " + name + rest)
		if want := (processStat{7, 780 * time.Millisecond, 140 * time.Millisecond}); s != want || !ok {
			t.Errorf("%s: %v, %t, want %v", name, s, ok, want)
		}
	}
	for _, stat := range []string{"", "42 (sh", "42 (sh) S 7", "42 (sh) S x 1 1 0 -1 4194560 100 200 0 0 5 6 70 8 20"} {
		if _, ok := parseStat(stat); ok {
			t.Errorf("%q is taken", stat)
		}
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip(err)
	}
	if !slices.Contains(readProcesses().children[os.Getppid()], os.Getpid()) {
		t.Error("this process is no child of its parent")
	}
}
