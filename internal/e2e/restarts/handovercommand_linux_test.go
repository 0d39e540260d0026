package restarts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// handoverReport is the output of "spamgate handover --json".
type handoverReport struct {
	Running    bool
	HandedOver bool `json:"handed_over"`
	Error      string
	Old, New   struct {
		PID     int
		Version string
	}
	Seconds    float64
	Sessions   int     `json:"sessions_open"`
	EndsWithin float64 `json:"ends_within_seconds"`
}

// handOverByCommand runs "spamgate handover --json" in a directory and checks its exit code.
func handOverByCommand(t testing.TB, dir string, want int, args ...string) (r handoverReport) {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"handover", "--json"}, args...)...)
	cmd.Dir = dir
	return runHandover(t, cmd, want)
}

// runHandover runs a command that hands over, and checks its exit code.
func runHandover(t testing.TB, cmd *exec.Cmd, want int) (r handoverReport) {
	t.Helper()
	stdout, stderr, code := harness.Run(t, cmd)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != want {
		t.Fatalf("handover: exit code %d, want %d; %v\n%s%s", code, want, err, stdout, stderr)
	}
	if r.HandedOver != (want == 0) || (r.Error == "") != (want == 0) {
		t.Errorf("exit code %d with %+v", code, r)
	}
	return r
}

// TestHandoverCommand hands a gate over by the command again and again while clients send
// through it. None is refused, and each message arrives once.
func TestHandoverCommand(t *testing.T) {
	t.Parallel()
	const handovers = 4
	sink := smtptest.NewSink(t)
	g := startSuccession(t, harness.Setup{NextHop: "smtp://" + sink.Addr()}, harness.Binary(t))
	idle := harness.MustDial(t, g.Addr)
	l := harness.StartLoad(t, g.Addr, false)
	for i := range handovers {
		l.During(harness.IfFull(400, 2000)/handovers, func() {
			r := handOverByCommand(t, g.Dir, 0)
			switch {
			case !r.Running || r.Old.PID != g.Process.Pid || r.New.PID == r.Old.PID || r.Seconds <= 0:
				t.Errorf("process %d reported %+v", g.Process.Pid, r)
			case r.Old.Version == "" || r.New.Version != r.Old.Version:
				t.Errorf("the versions are %+v", r)
			case i == 0 && r.Sessions < 1 || r.EndsWithin != 35:
				t.Errorf("with an idle client: %+v", r)
			}
			g.Follow(r.New.PID)
		})
	}
	sent := l.Stop()
	if reply, err := idle.Reply(); err != nil || !strings.HasPrefix(reply, "421 4.3.2 ") {
		t.Errorf("the idle client heard %q, %v", reply, err)
	}
	g.WaitNth(handovers, "ended")
	g.Stop()
	g.WantEnded(handovers + 1)
	harness.WantOnce(t, sink, sent)
	t.Logf("%d messages, %d times 421", len(sent), l.Tempfailed.Load())

	if r := handOverByCommand(t, g.Dir, 1); r.Running {
		t.Errorf("without a gate: %+v", r)
	}
}

// TestHandoverCommandFails has successors that do not come up. The command says why, and the
// gate goes on.
func TestHandoverCommandFails(t *testing.T) {
	t.Parallel()
	dir := harness.Setup{}.Dir(t)
	program := filepath.Join(dir, "spamgate")
	copyFile(t, harness.Binary(t), program)
	g := harness.LaunchSuccession(t, dir, nil, nil, program, "serve")
	g.Addr = g.WaitListening()
	replace := func(script string) {
		t.Helper()
		harness.WriteFile(t, program+".new", script)
		if err := os.Chmod(program+".new", 0o755); err != nil {
			t.Fatal(err)
		}
		rename(t, program+".new", program)
	}
	const goesOn = "not handed over, the running gate goes on: "
	want := func(why string, args ...string) {
		t.Helper()
		if r := handOverByCommand(t, dir, 2, args...); !r.Running || !strings.HasPrefix(r.Error, goesOn+why) {
			t.Errorf("%+v, want %q", r, why)
		}
		harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "x"))
	}

	taken := smtptest.NewSink(t)
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Listen: taken.Addr()}.Config())
	want("exit status 2; config.toml:3:1: listen.addr: ")
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{}.Config())

	replace("#!/bin/sh\nexit 3\n")
	want("exit status 3; what it said is on standard error")
	replace("#!/bin/sh\nkill -KILL $$\n")
	want("signal: killed")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	want("fork/exec ")

	// One that hangs, until its time is up, and until the command is interrupted. Meanwhile
	// another command is refused.
	started := filepath.Join(dir, "started")
	replace(fmt.Sprintf("#!/bin/sh\necho $$ >%[1]s.new; mv %[1]s.new %[1]s; exec sleep 1000\n", started))
	want("it did not serve within 100ms", "--timeout", "100ms")
	os.Remove(started) // it may have been killed before
	cmd := exec.Command(harness.Binary(t), "handover")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the successor to start", func() bool {
		_, err := os.Stat(started)
		return err == nil
	})
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	heir, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if r := handOverByCommand(t, dir, 2); !strings.Contains(r.Error, fmt.Sprintf("already handing over to process %d", heir)) {
		t.Errorf("during a handover: %+v", r)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("interrupted: %v", err)
	}
	g.WaitRecord("not handed over, this process goes on", "error", "nobody waits for it any more")
	if err := syscall.Kill(heir, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the successor is still there: %v", err)
	}
	copyFile(t, harness.Binary(t), program+".new")
	rename(t, program+".new", program)
	g.Follow(handOverByCommand(t, dir, 0).New.PID)
	g.Stop()
}
