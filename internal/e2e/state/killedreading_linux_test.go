package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// Number of entries of a long list, before and after it has grown.
const (
	longEntries  = 100_000
	grownEntries = 500_000
)

// A longList is a gate whose list has grown while the gate was stopped.
type longList struct {
	*stateGate
	marker string // exists while a gate reads the list
}

func newLongList(t *testing.T) *longList {
	dir := t.TempDir()
	l := &longList{stateGate: &stateGate{Gate: &harness.Gate{T: t, Dir: dir, Ended: true}, list: filepath.Join(dir, "blocked.txt"), state: filepath.Join(dir, "state")}}
	l.marker = filepath.Join(l.state, "lists", "blocked", "building")
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Tables: "[state]\ndir = \"state\"\n"}.Config())
	l.write(longEntries)
	l.start()
	l.Stop()
	l.write(grownEntries)
	return l
}

func (l *longList) write(entries int) {
	var b strings.Builder
	for i := range entries {
		fmt.Fprintf(&b, "long%d.example\n", i)
	}
	harness.WriteFile(l.T, l.list, b.String())
}

// wants checks that the gate serves the list with that many entries.
func (l *longList) wants(entries int) {
	l.T.Helper()
	a := &harness.Asker{Addr: l.Addr}
	defer a.Close()
	for i, want := range map[int]string{0: "550", entries - 1: "550", entries: "250"} {
		from := fmt.Sprintf("x@long%d.example", i)
		if reply, err := a.Verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, want) {
			l.T.Errorf("%s: %q, %v; want %s", from, reply, err, want)
		}
	}
}

// reading reports whether the marker says that the running gate reads the list, and no
// gate before it.
func (l *longList) reading() bool {
	text, err := os.ReadFile(l.marker)
	return err == nil && strings.Contains(string(text), fmt.Sprintf("work/%d-", l.Process.Pid))
}

// killReading kills the gate while it reads the list, which it does after it has begun
// to listen.
func (l *longList) killReading() {
	l.T.Helper()
	harness.WaitFor(l.T, "the list to be read", l.reading)
	l.wants(longEntries) // served meanwhile
	if !l.reading() {
		l.T.Fatal("the list was read before the gate could be killed: the test needs a longer one")
	}
	l.Signal(syscall.SIGKILL)
	l.Wait()
	noDamage(l.T, l.Log.String())
}

// wantHeld checks that the running gate holds the list and says why.
func (l *longList) wantHeld() {
	l.T.Helper()
	const why = "killed twice while it read this version"
	held := l.WaitRecord("list held, its last good version serves", "list", "blocked")
	if !strings.Contains(held.Text("error"), why) {
		l.T.Errorf("held for %q", held.Text("error"))
	}
	l.wants(longEntries)
	l.command(0, []string{"HELD", why, "spamgate lists accept blocked"}, "lists", "status", "blocked")
}

// command runs a command and checks its exit code, and that its output contains texts,
// wherever its lines are broken.
func (l *longList) command(code int, texts []string, args ...string) {
	l.T.Helper()
	cmd := exec.Command(harness.Binary(l.T), args...)
	cmd.Dir = l.Dir
	out, errs, got := harness.Run(l.T, cmd)
	message := strings.Join(strings.Fields(out+errs), " ")
	for _, text := range texts {
		if !strings.Contains(message, text) {
			l.T.Errorf("%v does not say %q: %s", args, text, message)
		}
	}
	if got != code {
		l.T.Errorf("%v: exit code %d, want %d: %s", args, got, code, message)
	}
}

// TestKilledReading kills gates with SIGKILL, as the kernel does if memory is short,
// while they read a list that has grown. Each start serves the stored index at once. The
// third start does not read the list and says why. If somebody accepts the list, a gate
// tries once more: if that gate is killed, the next one holds the list again; otherwise
// the list goes live.
func TestKilledReading(t *testing.T) {
	t.Parallel()
	l := newLongList(t)
	for range 2 {
		l.start()
		l.WaitRecord("the stored index of a long list serves, its files are read once the gate listens")
		l.killReading()
	}
	l.start()
	l.wantHeld()
	l.Stop()
	l.command(0, []string{"HELD", "killed twice"}, "lists", "status", "blocked") // from disk
	l.start()
	l.wantHeld()

	accepting := exec.Command(harness.Binary(t), "lists", "accept", "blocked")
	accepting.Dir = l.Dir
	if err := accepting.Start(); err != nil {
		t.Fatal(err)
	}
	l.killReading()
	accepting.Wait() // fails, since the gate is gone
	l.start()
	l.wantHeld()

	l.Stop()
	l.command(0, []string{"would be accepted, 500,000 entries; 100,000 before"}, "lists", "accept", "blocked", "--dry-run")
	l.command(0, []string{"accepted, 500,000 entries; 100,000 before"}, "lists", "accept", "blocked", "--reason", "more memory")
	l.start()
	harness.WaitVerdict(t, l.Addr, fmt.Sprintf("x@long%d.example", grownEntries-1), "550")
	l.wants(grownEntries)
	harness.WaitFor(t, "nothing to be noted any more", func() bool { _, err := os.Lstat(l.marker); return errors.Is(err, fs.ErrNotExist) })
	l.command(2, []string{"nothing is held"}, "lists", "accept", "blocked")
	l.Stop()
	noDamage(t, l.Log.String())
}

// TestKilledReadingChanged changes a version that is held because of kills: the gate
// reads the new version by itself. A running gate accepts the version that it holds.
func TestKilledReadingChanged(t *testing.T) {
	t.Parallel()
	l := newLongList(t)
	for range 2 {
		l.start()
		l.killReading()
	}
	l.start()
	l.wantHeld()
	l.command(0, []string{"accepted, 500,000 entries; 100,000 before", "live in the running gate"}, "lists", "accept", "blocked")
	l.wants(grownEntries)
	l.Stop()

	l.write(grownEntries + longEntries)
	for range 2 {
		l.start()
		harness.WaitFor(t, "the list to be read", l.reading)
		l.Signal(syscall.SIGKILL)
		l.Wait()
	}
	l.start()
	l.WaitRecord("list held, its last good version serves", "list", "blocked")
	l.wants(grownEntries)
	l.write(longEntries / 2)
	l.command(0, nil, "lists", "status", "blocked")
	held := func() bool { return strings.Contains(l.Log.String(), "shrunk too much") }
	harness.WaitFor(t, "the changed file to be looked at", held)
	l.write(grownEntries + 1)
	harness.WaitVerdict(t, l.Addr, fmt.Sprintf("x@long%d.example", grownEntries), "550")
	l.Stop()
}
