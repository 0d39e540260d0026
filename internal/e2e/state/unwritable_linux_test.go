package state

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// mountState mounts a small private file system as a gate's state directory.
func mountState(t *testing.T, dir, size string) string {
	t.Helper()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", state, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return state
}

// remount changes a mount. It tries again while a gate that has just started has a file
// open for writing, since the mount cannot become read-only then.
func remount(t *testing.T, state string, flags uintptr, options string) {
	t.Helper()
	harness.WaitFor(t, "the mount to be changed", func() bool {
		err := unix.Mount("none", state, "", unix.MS_REMOUNT|flags, options)
		if err != nil && err != unix.EBUSY {
			t.Fatal(err)
		}
		return err == nil
	})
}

// A stateGate is a gate whose list and state directory a test changes.
type stateGate struct {
	*harness.Gate
	list, state string
}

// noHistory is for gates whose state directory becomes read-only: no file in it may be open for
// writing then, and the history of decisions always has one.
const noHistory = "[decisions]\nkeep = \"0\"\n"

// newStateGate makes the directory of a gate with a small state directory. Tables are more of
// its configuration.
func newStateGate(t *testing.T, size, tables string) *stateGate {
	dir := t.TempDir()
	g := &stateGate{Gate: &harness.Gate{T: t, Dir: dir, Ended: true}, list: filepath.Join(dir, "blocked.txt"), state: mountState(t, dir, size)}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Tables: "[state]\ndir = \"state\"\n" + tables, Lists: harness.BlockedLists + "max_growth = 0\n"}.Config())
	return g
}

// start starts the gate and waits until it listens.
func (g *stateGate) start() {
	g.T.Helper()
	g.Gate = harness.Serve(g.T, g.Dir)
}

// change writes a list of names of a family, and waits until they are live.
func (g *stateGate) change(family string, entries int) {
	g.T.Helper()
	var b strings.Builder
	for i := range entries {
		fmt.Fprintf(&b, "%s%d.example\n", family, i)
	}
	harness.WriteFile(g.T, g.list, b.String())
	if !g.Ended {
		harness.WaitVerdict(g.T, g.Addr, fmt.Sprintf("x@%s%d.example", family, entries-1), "550")
	}
}

// wantStored checks that the state directory alone yields a family of names. The list is
// moved away meanwhile.
func (g *stateGate) wantStored(family string, entries int) {
	g.T.Helper()
	if err := os.Rename(g.list, g.list+".away"); err != nil {
		g.T.Fatal(err)
	}
	cmd := exec.Command(harness.Binary(g.T), "check", fmt.Sprintf("x@%s0.example", family), fmt.Sprintf("x@%s%d.example", family, entries-1))
	cmd.Dir = g.Dir
	out, errs, code := harness.Run(g.T, cmd)
	if code != 1 || strings.Count(out, "reject") < 2 {
		g.T.Errorf("kept is not %s: exit code %d\n%s%s", family, code, out, errs)
	}
	noDamage(g.T, errs)
	if err := os.Rename(g.list+".away", g.list); err != nil {
		g.T.Fatal(err)
	}
}

// wantFiles waits until at least count files in the state directory match a pattern.
func (g *stateGate) wantFiles(pattern string, count int) {
	g.T.Helper()
	harness.WaitFor(g.T, fmt.Sprintf("%d of %s", count, pattern), func() bool {
		found, _ := filepath.Glob(filepath.Join(g.state, pattern)) // the pattern is well-formed
		return len(found) >= count
	})
}

// wantHistory waits until the history has at least that many versions. The gate stores
// them in the background, and stores later what it could not store at first.
func (g *stateGate) wantHistory(versions int) { g.wantFiles("lists/*/history/2*", versions) }

const unusable = "state directory unusable, indexes live in temporary files and the next start reads the lists again"

// wantSaidOnce checks that the log says once that the state directory is unusable, and
// why.
func (g *stateGate) wantSaidOnce(why string) {
	g.T.Helper()
	records := g.Records(unusable)
	if len(records) != 1 || records[0].Text("level") != "WARN" || !strings.Contains(records[0].Text("error"), why) {
		g.T.Errorf("the log says %q, once, want %q: %v", unusable, why, records)
	}
}

// wantTidy waits until the state directory has only what belongs there and the work
// directory of a running gate.
func (g *stateGate) wantTidy() {
	g.T.Helper()
	harness.WaitFor(g.T, "the state directory to be tidy", func() bool {
		rest := slices.DeleteFunc(leftovers(g.T, g.state), func(name string) bool {
			return !g.Ended && filepath.Dir(name) == "work"
		})
		return len(rest) == 0
	})
}

// A list of largeEntries does not fit into a state directory of 1 MiB, one of smallEntries
// does.
const (
	smallEntries = 100
	largeEntries = 40_000
)

// TestStateFull has a state directory that is too small for an index. The lists serve,
// what is stored stays whole, and with more space the next index is stored.
func TestStateFull(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	g := newStateGate(t, "1m", "")
	g.change("small", smallEntries)
	g.start()
	g.wantHistory(1)
	g.change("large", largeEntries)
	g.change("other", largeEntries)
	g.wantSaidOnce("no space left on device")
	g.wantTidy()
	g.wantStored("small", smallEntries)
	harness.WaitVerdict(t, g.Addr, "x@small0.example", "250")
	harness.WaitVerdict(t, g.Addr, "x@other0.example", "550")

	remount(t, g.state, 0, "size=64m")
	g.change("third", largeEntries)
	g.WaitRecord("state directory is usable again")
	g.wantStored("third", largeEntries)
	g.wantSaidOnce("no space")
	g.Stop()
	g.wantTidy()
	g.start()
	harness.WaitVerdict(t, g.Addr, "x@third0.example", "550")
	noDamage(t, g.Log.String())
}

// TestStateFullAtStart has a state directory that is full from the start on.
func TestStateFullAtStart(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	g := newStateGate(t, "64k", "")
	filler := filepath.Join(g.state, "filler")
	harness.WriteFile(t, filler, strings.Repeat("x", 64<<10))
	g.change("first", smallEntries)
	g.start()
	harness.WaitVerdict(t, g.Addr, "x@first0.example", "550")
	g.change("second", smallEntries)
	g.wantSaidOnce("no space left on device")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	g.wantTidy()
	g.change("third", smallEntries)
	g.WaitRecord("state directory is usable again")
	g.wantHistory(1)
	g.wantStored("third", smallEntries)
	g.Stop()
	g.wantTidy()
}

// TestStateReadOnly has a state directory that is read-only at a start, and becomes
// read-only while a gate runs. The gate uses what is stored, and serves what is new.
func TestStateReadOnly(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	g := newStateGate(t, "64m", noHistory)
	g.change("first", smallEntries)
	g.start()
	g.wantHistory(1)
	g.Stop() // it keeps open what it has built, and the mount would be busy
	g.start()
	remount(t, g.state, unix.MS_BIND|unix.MS_RDONLY, "")
	g.change("second", smallEntries)
	g.change("third", smallEntries)
	g.wantSaidOnce("read-only file system")
	g.wantStored("first", smallEntries)
	remount(t, g.state, unix.MS_BIND, "")
	g.change("fourth", smallEntries)
	g.WaitRecord("state directory is usable again")
	g.wantHistory(2)
	g.wantStored("fourth", smallEntries)
	g.Stop()
	g.wantTidy()

	remount(t, g.state, unix.MS_BIND|unix.MS_RDONLY, "")
	g.start()
	harness.WaitVerdict(t, g.Addr, "x@fourth0.example", "550")
	g.change("fifth", smallEntries)
	g.wantSaidOnce("read-only file system")
	g.wantTidy()
	remount(t, g.state, unix.MS_BIND, "")
	g.change("sixth", smallEntries)
	g.WaitRecord("state directory is usable again")
	g.wantStored("sixth", smallEntries)
}

// TestStateRemoved removes the state directory of a running gate. The gate serves on,
// and stores what is new under the same key.
func TestStateRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &stateGate{Gate: &harness.Gate{T: t, Dir: dir, Ended: true}, list: filepath.Join(dir, "blocked.txt"), state: filepath.Join(dir, "state")}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Tables: "[state]\ndir = \"state\"\n"}.Config())
	g.change("first", largeEntries)
	g.start()
	g.wantHistory(1)
	g.wantFiles("lists/*/current.bits", 1)
	harness.WaitFor(t, "the state directory to be gone", func() bool {
		return os.RemoveAll(g.state) == nil // fails if the gate makes a file in it meanwhile
	})
	harness.WaitVerdict(t, g.Addr, "x@first1.example", "550")
	harness.WaitVerdict(t, g.Addr, "x@second1.example", "250")
	g.change("second", largeEntries)
	g.WaitRecord("state directory is gone, it is made again")
	g.wantHistory(1)
	g.wantStored("second", largeEntries)
	harness.WaitVerdict(t, g.Addr, "x@first1.example", "250")
	g.Stop()
	g.wantTidy()
	// The gate may have noticed while the directory was being removed.
	noDamage(t, strings.ReplaceAll(g.Log.String(), unusable, "gone"))
	g.start()
	harness.WaitVerdict(t, g.Addr, "x@second1.example", "550")
	noDamage(t, g.Log.String())
}

// TestHealthOfState fills the state directory, and makes it read-only.
func TestHealthOfState(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	g := newStateGate(t, "32m", noHistory)
	g.change("good", smallEntries)
	g.start()
	if out := g.Command(t, 0, "health"); !strings.Contains(out, "state  is usable: "+g.state) {
		t.Errorf("it says\n%s", out)
	}
	says := func(code int, want string) {
		t.Helper()
		if out := strings.Join(strings.Fields(g.Command(t, code, "health")), " "); !strings.Contains(out, want) {
			t.Errorf("it says %s\nwithout %q", out, want)
		}
	}
	filling := filepath.Join(g.state, "filling")
	harness.WriteFile(t, filling, strings.Repeat("x", 20<<20))
	says(1, "MiB left: make room")
	if err := os.Remove(filling); err != nil {
		t.Fatal(err)
	}
	g.Stop() // it keeps open what it has built, and the mount would be busy
	g.start()
	remount(t, g.state, unix.MS_BIND|unix.MS_RDONLY, "")
	says(1, "is not writable: read-only file system")
	remount(t, g.state, unix.MS_BIND, "")
	says(0, "is usable")
}
