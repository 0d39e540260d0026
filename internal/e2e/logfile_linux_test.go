package e2e

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

	"spamgate/internal/smtptest"
)

// fileLog is a gate's log in files: gate.log, and those that it was moved to.
type fileLog struct {
	t    testing.TB
	path string
}

// read returns the records of a file, and how many lines are not records.
func (l fileLog) read(path string) (records []record, torn int) {
	l.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if r := parseRecord(line); r != nil {
			records = append(records, r)
		} else {
			torn++
		}
	}
	return records, torn
}

// wait waits for the n-th record with a message text in a file.
func (l fileLog) wait(path, msg string, n int, with ...string) record {
	l.t.Helper()
	var found []record
	pollFor(l.t, fmt.Sprintf("line %d with %q %q in %s", n, msg, with, filepath.Base(path)), func() bool {
		found = found[:0]
		records, _ := l.read(path)
		for _, r := range records {
			if r.matches(msg, with) {
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

// documentedRotation is the part of docs/operating.md that is for logrotate.
var documentedRotation = regexp.MustCompile("(?s)```\n/var/log/spamgate/gate.log (\\{.*?\n\\})\n```")

// logrotate rotates the file with logrotate and what docs/operating.md has for it.
// What it does with systemd there, a command does here.
func (l fileLog) logrotate(reload string) {
	l.t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		l.t.Fatal(err)
	}
	const command = "systemctl try-reload-or-restart spamgate"
	rule := documentedRotation.FindSubmatch(page)
	if rule == nil || strings.Count(string(rule[1]), command) != 1 {
		l.t.Fatal("docs/operating.md has no configuration of logrotate")
	}
	dir := l.t.TempDir()
	file := filepath.Join(dir, "spamgate")
	writeFile(l.t, file, l.path+" "+strings.Replace(string(rule[1]), command, reload, 1)+"\n")
	cmd := exec.Command(tool(l.t, "logrotate", "logrotate"), "--force", "--state", filepath.Join(dir, "state"), file)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("logrotate: %v\n%s", err, out)
	}
}

// TestLogFileRotated moves a log file away, by hand and with logrotate, and has it
// opened again by SIGHUP and by a handover, while clients send. Each message is in
// one of the files, once.
func TestLogFileRotated(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := setup{listen: freeAddr(t), nextHop: "smtp://" + sink.Addr(), keys: map[string]string{"log": `output = "file:log/gate.log"`}}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	l := fileLog{t, filepath.Join(dir, "log", "gate.log")}
	if err := os.Mkdir(filepath.Dir(l.path), 0o755); err != nil {
		t.Fatal(err)
	}
	g := launchReaped(t, dir, nil, nil, binary(t), "serve")
	g.addr = s.listen
	l.wait(l.path, "listening", 1)
	if info, err := os.Stat(l.path); err != nil || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("mode %v, %v; want 0640 or less", info.Mode(), err)
	}
	load := startLoad(t, g.addr, false)
	reopened := func() { // the totals of the reload are in the new file
		t.Helper()
		l.wait(l.path, "reloaded", 1)
	}
	const each = 200
	for n := range 3 {
		load.during(scale(each), func() {
			l.move(n + 1)
			g.signal(syscall.SIGHUP)
			reopened()
		})
	}
	load.during(scale(each), func() {
		l.logrotate(fmt.Sprintf("kill -HUP %d", g.process.Pid))
		reopened()
	})
	old := g.process.Pid
	load.during(scale(each), func() {
		l.move(5)
		g.signal(syscall.SIGUSR2)
		// Both write to the new file: the one that is succeeded, too.
		g.follow(l.wait(l.path, "handed over", 1).pid())
	})
	load.during(scale(each), func() { l.wait(l.path, "stopped", 1) })
	if r := g.waitRecord("ended"); r.pid() != old {
		t.Errorf("process %d has ended, want %d", r.pid(), old)
	}
	load.during(scale(each), func() {
		l.move(6)
		g.signal(syscall.SIGHUP)
		reopened()
	})
	sent := load.stop()
	g.stop()
	g.wantEnded(2)
	wantOnce(t, sink, sent)
	l.wantOnce(sent)
}

// wantOnce wants each message to be in one of the files, once, as accepted.
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
			if r.matches("accepted", nil) {
				seen[strings.TrimSuffix(strings.TrimPrefix(r.string("message_id"), "<"), "@example.com>")]++
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

// startFileGate starts a gate that logs to gate.log.
func startFileGate(t *testing.T, output string) (*gate, fileLog) {
	t.Helper()
	s := setup{listen: freeAddr(t), keys: map[string]string{"log": fmt.Sprintf("output = %q", "file:"+output)}}
	g := launchGate(t, s)
	g.addr = s.listen
	l := fileLog{t, filepath.Join(g.dir, output)}
	if filepath.IsAbs(output) {
		l.path = output
	}
	l.wait(l.path, "listening", 1)
	return g, l
}

// TestLogFileNotReopened has a file that cannot be opened again: the one before goes
// on, until it can. A configuration with an error does not keep it from that.
func TestLogFileNotReopened(t *testing.T) {
	t.Parallel()
	g, l := startFileGate(t, "gate.log")
	first := l.move(1)
	if err := os.Mkdir(l.path, 0o755); err != nil {
		t.Fatal(err)
	}
	g.signal(syscall.SIGHUP)
	const failed = "log file not reopened, the old one continues"
	l.wait(first, failed, 1, "file", l.path)
	g.waitRecord(failed, "file", l.path)
	l.wait(first, "reloaded", 1)
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(g.dir, "config.toml"), "[[list]\n")
	g.signal(syscall.SIGHUP)
	l.wait(l.path, "reload failed, nothing has changed", 1)
	mustDial(t, g.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m1"))
	l.wait(l.path, "accepted", 1)
	if err := os.Remove(first); err != nil {
		t.Error(err)
	}
}

// TestLogFileFull has the disk of the log become full. Mail goes on, the lines are
// counted, and once there is room again the log says how many are missing.
func TestLogFileFull(t *testing.T) {
	t.Parallel()
	privateMounts(t)
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
	c, asked := mustDial(t, g.addr), g.socketClient()
	for n := 0; droppedLines(t, asked) < 5; n++ {
		reply := c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", fmt.Sprintf("m%d", n)))
		if !strings.HasPrefix(reply, "250") {
			t.Fatalf("message %d was answered with %q", n, reply)
		}
	}
	g.waitRecord("log file cannot be written, lines are dropped", "file", l.path)
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "last"))
	told, _ := l.wait(l.path, "log lines dropped", 1)["dropped"].(float64)
	l.wait(l.path, "accepted", 1, "message_id", "<last@example.com>")
	if counted := droppedLines(t, asked); int(told) != counted {
		t.Errorf("the log tells of %v dropped lines, the metric of %d", told, counted)
	}
	if _, torn := l.read(l.path); torn > 1 { // the disk became full within that one
		t.Errorf("%d lines are not records", torn)
	}
	fill()
	g.stop()
}

// TestLogFileAtStart has log files that cannot be opened at the start.
func TestLogFileAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "target"), "")
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
			text := setup{keys: map[string]string{"log": fmt.Sprintf("output = %q", "file:"+output)}}.config()
			before, _, _ := strings.Cut(text, "output = ")
			where := fmt.Sprintf("config.toml:%d:1: log.output: ", 1+strings.Count(before, "\n"))
			writeFile(t, filepath.Join(dir, "config.toml"), text)
			writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
			for _, args := range [][]string{{"serve"}, {"config", "check"}} {
				cmd := exec.Command(binary(t), args...)
				cmd.Dir = dir
				late := time.AfterFunc(lateLimit, func() { cmd.Process.Kill() })
				_, stderr, code := run(t, cmd)
				late.Stop()
				if code != 2 || !strings.Contains(stderr, where) || !strings.Contains(stderr, says[0]+says[1]) {
					t.Errorf("%v: exit code %d, want 2; %q does not say %q and %q", args, code, stderr, where, says)
				}
			}
		})
	}
	// Where nobody else can make a link it may be one.
	g, l := startFileGate(t, filepath.Join(dir, "link"))
	g.stop()
	if text, err := os.ReadFile(filepath.Join(dir, "target")); err != nil || !strings.Contains(string(text), "listening") {
		t.Errorf("%s has led to %q, %v", l.path, text, err)
	}
}
