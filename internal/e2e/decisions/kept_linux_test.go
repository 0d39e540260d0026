package decisions

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// TestOwner has root search the history of a gate that has stopped, in a directory of another user.
// The commands act as that user: they read what he may read, and leave no file of root behind.
func TestOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const owner = 54321
	g := start(t, "info", harness.Setup{})
	id := refuse(t, g)
	g.Stop()
	state := filepath.Join(g.Dir, "state")
	for dir := g.Dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	each(t, state, func(path string) error { return os.Lchown(path, owner, owner) })
	wantIDs(t, g, []string{id}, "--sender", spammer)
	wantText(t, g.Command(t, 0, "decisions", "top", "senders"), spammer+" 1 20")
	wantText(t, g.Command(t, 0, "why", ann), id, "The gate refused the sender", "The history reaches back to 20")
	wantText(t, g.Command(t, 1, "decisions", "find", "--id", "AAAAAAAAAAAA"), "Nothing found.")
	each(t, state, func(path string) error {
		info, err := os.Lstat(path)
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != owner {
			t.Errorf("%s belongs to user %d", path, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	})
	if err := os.Chmod(filepath.Join(g.Dir, "config.toml"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantText(t, g.Command(t, 2, "decisions", "find"), "permission denied")
}

// each calls do for all files below a directory.
func each(t *testing.T, dir string, do func(path string) error) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return do(path)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHandover refuses mail before, while and after a gate hands over. All of it is found, and both
// processes end in order.
func TestHandover(t *testing.T) {
	t.Parallel()
	addr := harness.FreeAddr(t)
	g := harness.LaunchSuccession(t, harness.Setup{Listen: addr}.Dir(t), nil, nil, harness.Binary(t), "serve")
	g.Addr = g.WaitListening()
	c := harness.MustDial(t, addr) // its connection stays in the first process
	want := map[string]bool{}
	verdict := func(c *harness.Client) {
		t.Helper()
		reply, err := c.Verdict(spammer, ann)
		if err != nil {
			t.Fatal(err)
		}
		want[harness.WantRefusal(t, reply, spammer, "blocked", "unsolicited mail")] = true
	}
	verdict(c)
	g.Signal(syscall.SIGUSR2)
	verdict(c)
	g.Follow(g.WaitNth(1, "handed over").PID())
	verdict(c)                         // the old process
	verdict(harness.MustDial(t, addr)) // the new one
	c.Want(t, "QUIT", "221")
	g.WaitNth(1, "ended")
	refuse := harness.MustDial(t, addr)
	verdict(refuse)
	got := map[string]bool{}
	for _, id := range ids(find(t, g.Gate)) {
		got[id] = true
	}
	for id := range want {
		if !got[id] {
			t.Errorf("%s is not found", id)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %d decisions, want %d", len(got), len(want))
	}
}

// TestFullDisk has a history on a disk of its own, which is full. Mail passes, the health warns, and
// the history goes on by itself when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	s := harness.Setup{Listen: harness.FreeAddr(t), Keys: map[string]string{"log": `output = "file:gate.log"`}}
	dir := s.Dir(t)
	history := filepath.Join(dir, "state", "decisions")
	if err := os.MkdirAll(history, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", history, "tmpfs", 0, "mode=0700,size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(history, unix.MNT_DETACH) })
	g := serve(t, dir, s.Listen)
	first := refuse(t, g)
	wantIDs(t, g, []string{first})
	filler := filepath.Join(history, "filler")
	fill(t, filler)
	lost := 0
	stands := func() bool {
		refuse(t, g)
		accept(t, g)
		lost++
		return strings.Contains(logOf(t, g), "history of decisions stands still, mail passes")
	}
	harness.WaitFor(t, "the history to stand still", stands)
	wantText(t, g.Command(t, 0, "health"), "history WARNING: decisions are not kept: ", "mail can pass", "state is usable")
	const missing = "The newest decisions are not in it: it stands still ("
	wantText(t, g.Command(t, 0, "decisions", "find"), missing)
	wantText(t, g.Command(t, 0, "decisions", "top", "lists"), missing)
	wantText(t, g.Command(t, 0, "decisions", "top", "lists", "--json"), `"stands_still": "`)
	wantText(t, g.Command(t, 0, "decisions", "export"), "This is not the whole history. The newest")
	families := harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics")
	if works := harness.MetricValue(t, families, "spamgate_decisions_working"); works != 0 {
		t.Errorf("spamgate_decisions_working is %v", works)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the history to go on", func() bool {
		id := refuse(t, g)
		return len(find(t, g, "--id", id).Decisions) == 1
	})
	wantIDs(t, g, []string{first}, "--id", first)
	harness.WaitFor(t, "the health to be good", func() bool { return !strings.Contains(g.Command(t, 0, "health"), "WARNING") })
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		t.Fatal(err)
	}
}
