package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// A fileLog is a gate's log in gate.log and in the files that it was moved to.
type fileLog struct {
	t    testing.TB
	path string
}

// read returns the records of a file, and the number of lines that are not records.
func (l fileLog) read(path string) (records []harness.Record, torn int) {
	l.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if r := harness.ParseRecord(line); r != nil {
			records = append(records, r)
		} else {
			torn++
		}
	}
	return records, torn
}

// wait waits for the n-th record in a file with that message text and those values.
func (l fileLog) wait(path, msg string, n int, with ...string) harness.Record {
	l.t.Helper()
	var found []harness.Record
	harness.WaitFor(l.t, fmt.Sprintf("line %d with %q %q in %s", n, msg, with, filepath.Base(path)), func() bool {
		found = found[:0]
		records, _ := l.read(path)
		for _, r := range records {
			if r.Matches(msg, with) {
				found = append(found, r)
			}
		}
		return len(found) >= n
	})
	return found[n-1]
}

// move moves the file away, as a program that rotates logs does.
func (l fileLog) move(n int) (to string) {
	l.t.Helper()
	to = fmt.Sprintf("%s-moved%d", l.path, n)
	if err := os.Rename(l.path, to); err != nil {
		l.t.Fatal(err)
	}
	return to
}

// packagedRotation returns the part of the packaged configuration of logrotate that is about a
// file, for another path, with another command to reload the gate, and for this user.
func packagedRotation(t testing.TB, file, path, reload string) string {
	t.Helper()
	const command = "systemctl try-reload-or-restart spamgate"
	text, err := os.ReadFile("../../../packaging/logrotate/spamgate")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?ms)^` + regexp.QuoteMeta(file) + ` (\{.*?^\}$)`).FindSubmatch(text)
	if rule == nil || strings.Count(string(text), command) != 1 {
		t.Fatalf("packaging/logrotate/spamgate does not rotate %s, or does not reload the gate once", file)
	}
	return path + " " + strings.NewReplacer(command, reload, "su spamgate spamgate", "").Replace(string(rule[1])) + "\n"
}

// logrotate runs logrotate with a configuration.
func logrotate(t testing.TB, config string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "spamgate")
	harness.WriteFile(t, file, config)
	cmd := exec.Command(harness.Program(t, "logrotate", "logrotate"), "--force", "--state", filepath.Join(dir, "state"), file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("logrotate: %v\n%s", err, out)
	}
}

// TestAuditRotated rotates the audit log. The next change begins a new file, and "lists
// changes" reads both.
func TestAuditRotated(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{})
	path := filepath.Join(g.Dir, "state", "audit.log")
	for n := range 3 {
		g.Lists(t, 0, "add", fmt.Sprintf("w%d.example", n), "--list", "blocked", "--reason", "r")
		if n < 2 {
			logrotate(t, packagedRotation(t, "/var/lib/spamgate/audit.log", path, ""))
		}
	}
	if rotated, err := filepath.Glob(path + ".*.gz"); err != nil || len(rotated) != 2 {
		t.Errorf("rotated: %v, %v", rotated, err)
	}
	for n, text := 0, g.Lists(t, 0, "changes"); n < 3; n++ {
		if !strings.Contains(text, fmt.Sprintf("w%d.example", n)) {
			t.Errorf("the change of w%d.example is missing:\n%s", n, text)
		}
	}
}

// TestLogFileRotated moves a log file away, by hand and with logrotate, while clients
// send. The gate opens it again at SIGHUP and at a handover. Each message is in one of
// the files, once.
func TestLogFileRotated(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := harness.Setup{Listen: harness.FreeAddr(t), NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{"log": `output = "file:log/gate.log"`}}
	dir := s.Dir(t)
	l := fileLog{t, filepath.Join(dir, "log", "gate.log")}
	if err := os.Mkdir(filepath.Dir(l.path), 0o755); err != nil {
		t.Fatal(err)
	}
	g := harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	g.Addr = s.Listen
	l.wait(l.path, "listening", 1)
	if info, err := os.Stat(l.path); err != nil || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("mode %v, %v; want 0640 or less", info.Mode(), err)
	}
	load := harness.StartLoad(t, g.Addr, false)
	reopened := func() { // the new file has the end of the reload
		t.Helper()
		l.wait(l.path, "reloaded", 1)
	}
	const each = 200
	for n := range 3 {
		load.During(harness.Scale(each), func() {
			l.move(n + 1)
			g.Signal(syscall.SIGHUP)
			reopened()
		})
	}
	load.During(harness.Scale(each), func() {
		logrotate(t, packagedRotation(t, "/var/log/spamgate/gate.log", l.path, fmt.Sprintf("kill -HUP %d", g.Process.Pid)))
		reopened()
	})
	old := g.Process.Pid
	load.During(harness.Scale(each), func() {
		l.move(5)
		g.Signal(syscall.SIGUSR2)
		// The old process writes to the new file, too.
		g.Follow(l.wait(l.path, "handed over", 1).PID())
	})
	load.During(harness.Scale(each), func() { l.wait(l.path, "stopped", 1) })
	if r := g.WaitRecord("ended"); r.PID() != old {
		t.Errorf("process %d has ended, want %d", r.PID(), old)
	}
	load.During(harness.Scale(each), func() {
		l.move(6)
		g.Signal(syscall.SIGHUP)
		reopened()
	})
	sent := load.Stop()
	g.Stop()
	g.WantEnded(2)
	harness.WantOnce(t, sink, sent)
	l.wantOnce(sent)
}

// wantOnce checks that each message is in one of the files as accepted, once.
func (l fileLog) wantOnce(sent map[string]bool) {
	l.t.Helper()
	files, err := filepath.Glob(l.path + "*")
	if err != nil {
		l.t.Fatal(err)
	}
	seen := map[string]int{}
	for _, file := range files {
		records, torn := l.read(file)
		if torn > 0 {
			l.t.Errorf("%s has %d lines that are not records", file, torn)
		}
		for _, r := range records {
			if r.Matches("accepted", nil) {
				seen[strings.TrimSuffix(strings.TrimPrefix(r.Text("message_id"), "<"), "@example.com>")]++
			}
		}
	}
	for id := range sent {
		if seen[id] != 1 {
			l.t.Errorf("%s is there %d times", id, seen[id])
		}
	}
	l.t.Logf("%d messages in %d files", len(sent), len(files))
}

// startFileGate starts a gate that logs to a file.
func startFileGate(t *testing.T, output string) (*harness.Gate, fileLog) {
	t.Helper()
	s := harness.Setup{Listen: harness.FreeAddr(t), Keys: map[string]string{"log": fmt.Sprintf("output = %q", "file:"+output)}}
	g := harness.LaunchGate(t, s)
	g.Addr = s.Listen
	l := fileLog{t, filepath.Join(g.Dir, output)}
	if filepath.IsAbs(output) {
		l.path = output
	}
	l.wait(l.path, "listening", 1)
	return g, l
}

// TestLogFileNotReopened has a log file that cannot be opened again. The gate goes on
// with the old one until it can, even if the configuration has an error.
func TestLogFileNotReopened(t *testing.T) {
	t.Parallel()
	g, l := startFileGate(t, "gate.log")
	first := l.move(1)
	if err := os.Mkdir(l.path, 0o755); err != nil {
		t.Fatal(err)
	}
	g.Signal(syscall.SIGHUP)
	const failed = "log file not reopened, the old one continues"
	l.wait(first, failed, 1, "file", l.path)
	g.WaitRecord(failed, "file", l.path)
	l.wait(first, "reloaded", 1)
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), "[[list]\n")
	g.Signal(syscall.SIGHUP)
	l.wait(l.path, "reload failed, nothing has changed", 1)
	harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m1"))
	l.wait(l.path, "accepted", 1)
	if err := os.Remove(first); err != nil {
		t.Error(err)
	}
}

// TestLogFileFull fills the disk of the log. Mail goes on, the gate counts the dropped
// lines, and once there is room the log says how many are missing.
func TestLogFileFull(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	g, l := startFileGate(t, filepath.Join(dir, "gate.log"))
	fill := func() {
		t.Helper()
		err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 64<<10), 0o600)
		if err == nil {
			t.Fatal("the disk is not full")
		}
	}
	fill()
	c, asked := harness.MustDial(t, g.Addr), g.SocketClient()
	for n := 0; droppedLines(t, asked) < 5; n++ {
		reply := c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", fmt.Sprintf("m%d", n)))
		if !strings.HasPrefix(reply, "250") {
			t.Fatalf("message %d was answered with %q", n, reply)
		}
	}
	g.WaitRecord("log file cannot be written, lines are dropped", "file", l.path)
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "last"))
	told, _ := l.wait(l.path, "log lines dropped", 1)["dropped"].(float64)
	l.wait(l.path, "accepted", 1, "message_id", "<last@example.com>")
	if counted := droppedLines(t, asked); int(told) != counted {
		t.Errorf("the log tells of %v dropped lines, the metric of %d", told, counted)
	}
	if _, torn := l.read(l.path); torn > 1 { // the disk may become full in a line
		t.Errorf("%d lines are not records", torn)
	}
	fill()
	g.Stop()
}

// TestLogFileAtStart has log files that cannot be opened at the start.
func TestLogFileAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil { // in spite of the umask
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "target"), "")
	for _, name := range []string{"open/link", "link"} {
		if err := os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	const regular = `; name a regular file, or write output = "stderr"`
	for output, says := range map[string][2]string{
		"none/gate.log":   {"no such file or directory", `; make the directory and let the gate's user write to it, or write output = "stderr"`},
		"target/gate.log": {"not a directory", regular},
		"open":            {"is a directory", regular},
		"fifo":            {"is not a regular file", regular},
		"open/link":       {"is a symbolic link in a directory that others may write to", "; name a regular file, write output = \"stderr\", or remove the write permission of others from the directory"},
		"/dev/null":       {"is not a regular file", regular},
	} {
		t.Run(strings.ReplaceAll(output, "/", "_"), func(t *testing.T) {
			text := harness.Setup{Keys: map[string]string{"log": fmt.Sprintf("output = %q", "file:"+output)}}.Config()
			before, _, _ := strings.Cut(text, "output = ")
			where := fmt.Sprintf("config.toml:%d:1: log.output: ", 1+strings.Count(before, "\n"))
			harness.WriteFile(t, filepath.Join(dir, "config.toml"), text)
			harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
			for _, args := range [][]string{{"serve"}, {"config", "check"}} {
				cmd := exec.Command(harness.Binary(t), args...)
				cmd.Dir = dir
				late := time.AfterFunc(harness.WorkTimeout, func() { cmd.Process.Kill() })
				_, stderr, code := harness.Run(t, cmd)
				late.Stop()
				if code != 2 || !strings.Contains(stderr, where) || !strings.Contains(stderr, says[0]+says[1]) {
					t.Errorf("%v: exit code %d, want 2; %q does not say %q and %q", args, code, stderr, where, says)
				}
			}
		})
	}
	// In a directory that only its owner may write to, the file may be a link.
	g, l := startFileGate(t, filepath.Join(dir, "link"))
	g.Stop()
	if text, err := os.ReadFile(filepath.Join(dir, "target")); err != nil || !strings.Contains(string(text), "listening") {
		t.Errorf("%s has led to %q, %v", l.path, text, err)
	}
}
