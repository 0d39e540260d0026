package e2e

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
)

// Names of a long list, and of what it grows to.
const (
	longEntries  = 100_000
	grownEntries = 500_000
)

// longList is a gate's list that has grown while it was stopped.
type longList struct {
	*stateGate
	marker string // is there while the list is read
}

func newLongList(t *testing.T) *longList {
	dir := t.TempDir()
	l := &longList{stateGate: &stateGate{gate: &gate{t: t, dir: dir, ended: true}, list: filepath.Join(dir, "blocked.txt"), state: filepath.Join(dir, "state")}}
	l.marker = filepath.Join(l.state, "lists", "blocked", "building")
	writeFile(t, filepath.Join(dir, "config.toml"), setup{more: "[state]\ndir = \"state\"\n"}.config())
	l.write(longEntries)
	l.start()
	l.stop()
	l.write(grownEntries)
	return l
}

func (l *longList) write(entries int) {
	var b strings.Builder
	for i := range entries {
		fmt.Fprintf(&b, "long%d.example\n", i)
	}
	writeFile(l.t, l.list, b.String())
}

// wants wants the gate to serve the list with so many entries.
func (l *longList) wants(entries int) {
	l.t.Helper()
	a := &asker{addr: l.addr}
	defer a.close()
	for i, want := range map[int]string{0: "550", entries - 1: "550", entries: "250"} {
		from := fmt.Sprintf("x@long%d.example", i)
		if reply, err := a.verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, want) {
			l.t.Errorf("%s: %q, %v; want %s", from, reply, err, want)
		}
	}
}

// reading reports whether the gate that runs, and no other before it, is noted to read
// the list.
func (l *longList) reading() bool {
	text, err := os.ReadFile(l.marker)
	return err == nil && strings.Contains(string(text), fmt.Sprintf("work/%d-", l.process.Pid))
}

// killReading kills the gate while it reads the list, which it does once it listens.
func (l *longList) killReading() {
	l.t.Helper()
	await(l.t, "the list to be read", l.reading)
	l.wants(longEntries) // while it is read
	if !l.reading() {
		l.t.Fatal("the list was read before the gate could be killed: the test needs a longer one")
	}
	l.signal(syscall.SIGKILL)
	l.wait()
	noDamage(l.t, l.log.String())
}

// wantHeld wants the gate that runs to hold the list, and to say why.
func (l *longList) wantHeld() {
	l.t.Helper()
	const why = "killed twice while it read this version"
	held := l.waitRecord("list held, its last good version serves", "list", "blocked")
	if !strings.Contains(held.string("error"), why) {
		l.t.Errorf("held for %q", held.string("error"))
	}
	l.wants(longEntries)
	l.command(0, []string{"HELD", why, "spamgate lists accept blocked"}, "lists", "status", "blocked")
}

// command runs a command, and wants texts in its output, however its lines are broken.
func (l *longList) command(code int, texts []string, args ...string) {
	l.t.Helper()
	cmd := exec.Command(binary(l.t), args...)
	cmd.Dir = l.dir
	out, errs, got := run(l.t, cmd)
	said := strings.Join(strings.Fields(out+errs), " ")
	for _, text := range texts {
		if !strings.Contains(said, text) {
			l.t.Errorf("%v does not say %q: %s", args, text, said)
		}
	}
	if got != code {
		l.t.Errorf("%v: exit code %d, want %d: %s", args, got, code, said)
	}
}

// TestKilledReading kills gates with SIGKILL, as the kernel does for want of memory,
// while they read a list that has grown. Each start serves the stored index at once;
// the third reads the list no more, and says why. Accepting it is one more try: killed
// over that, the gate holds it again. Let alone, it goes live.
func TestKilledReading(t *testing.T) {
	t.Parallel()
	l := newLongList(t)
	for range 2 {
		l.start()
		l.waitRecord("the stored index of a long list serves, its files are read once the gate listens")
		l.killReading()
	}
	l.start()
	l.wantHeld()
	l.stop()
	l.command(0, []string{"HELD", "killed twice"}, "lists", "status", "blocked") // from disk
	l.start()
	l.wantHeld()

	accepting := exec.Command(binary(t), "lists", "accept", "blocked")
	accepting.Dir = l.dir
	if err := accepting.Start(); err != nil {
		t.Fatal(err)
	}
	l.killReading()
	accepting.Wait() // an error, as the gate has gone
	l.start()
	l.wantHeld()

	l.stop()
	l.command(0, []string{"would be accepted, 500,000 entries; 100,000 before"}, "lists", "accept", "blocked", "--dry-run")
	l.command(0, []string{"accepted, 500,000 entries; 100,000 before"}, "lists", "accept", "blocked", "--reason", "more memory")
	l.start()
	waitVerdict(t, l.addr, fmt.Sprintf("x@long%d.example", grownEntries-1), "550")
	l.wants(grownEntries)
	await(t, "nothing to be noted any more", func() bool { _, err := os.Lstat(l.marker); return errors.Is(err, fs.ErrNotExist) })
	l.command(2, []string{"nothing is held"}, "lists", "accept", "blocked")
	l.stop()
	noDamage(t, l.log.String())
}

// TestKilledReadingChanged has a version that is held over kills changed by its
// author: what is new is read without being asked for. Accepting goes by the gate
// that runs.
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
	l.stop()

	l.write(grownEntries + longEntries)
	for range 2 {
		l.start()
		await(t, "the list to be read", l.reading)
		l.signal(syscall.SIGKILL)
		l.wait()
	}
	l.start()
	l.waitRecord("list held, its last good version serves", "list", "blocked")
	l.wants(grownEntries)
	l.write(longEntries)
	l.command(0, nil, "lists", "status", "blocked")
	held := func() bool { return strings.Contains(l.log.String(), "shrunk too much") }
	await(t, "the changed file to be looked at", held)
	l.write(grownEntries + 1)
	waitVerdict(t, l.addr, fmt.Sprintf("x@long%d.example", grownEntries), "550")
	l.stop()
}
