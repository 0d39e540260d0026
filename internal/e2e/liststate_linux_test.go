package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// privateMounts gives the test mounts that nobody else sees, and that end with it;
// programs that its goroutine starts see them, too. That takes root's rights.
func privateMounts(t *testing.T) {
	t.Helper()
	// Never unlocked: the thread is changed, and ends with the test's goroutine.
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err != nil {
		t.Skipf("mounts of its own: %v (it takes root, and a container that lets root mount)", err)
	}
}

// mountState mounts a small file system of its own as a gate's state directory.
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

// remount changes a mount. As long as a gate that has just started has a file open
// for writing, it cannot become read-only.
func remount(t *testing.T, state string, flags uintptr, options string) {
	t.Helper()
	await(t, "the mount to be changed", func() bool {
		err := unix.Mount("none", state, "", unix.MS_REMOUNT|flags, options)
		if err != nil && err != unix.EBUSY {
			t.Fatal(err)
		}
		return err == nil
	})
}

// stateGate is a gate whose list and state directory are changed under it.
type stateGate struct {
	*gate
	list, state string
}

// newStateGate makes the directory of a gate with a small state directory.
func newStateGate(t *testing.T, size string) *stateGate {
	dir := t.TempDir()
	g := &stateGate{gate: &gate{t: t, dir: dir, ended: true}, list: filepath.Join(dir, "blocked.txt"), state: mountState(t, dir, size)}
	writeFile(t, filepath.Join(dir, "config.toml"), setup{more: "[state]\ndir = \"state\"\n"}.config())
	return g
}

func (g *stateGate) start() {
	g.t.Helper()
	g.gate = launch(g.t, g.dir, exec.Command(binary(g.t), "serve"))
	g.addr = g.waitListening()
}

// change gives the list so many names of a family, and waits until they are live.
func (g *stateGate) change(family string, entries int) {
	g.t.Helper()
	var b strings.Builder
	for i := range entries {
		fmt.Fprintf(&b, "%s%d.example\n", family, i)
	}
	writeFile(g.t, g.list, b.String())
	if !g.ended {
		waitVerdict(g.t, g.addr, fmt.Sprintf("x@%s%d.example", family, entries-1), "550")
	}
}

// wantStored wants a family of names from what is kept, without the list.
func (g *stateGate) wantStored(family string, entries int) {
	g.t.Helper()
	if err := os.Rename(g.list, g.list+".away"); err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.Command(binary(g.t), "check", fmt.Sprintf("x@%s0.example", family), fmt.Sprintf("x@%s%d.example", family, entries-1))
	cmd.Dir = g.dir
	out, errs, code := run(g.t, cmd)
	if code != 1 || strings.Count(out, "reject") < 2 {
		g.t.Errorf("kept is not %s: exit code %d\n%s%s", family, code, out, errs)
	}
	noDamage(g.t, errs)
	if err := os.Rename(g.list+".away", g.list); err != nil {
		g.t.Fatal(err)
	}
}

// await waits for something that nothing tells of.
func await(t testing.TB, what string, come func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(lateLimit); !come(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// wantFiles waits until so many files in the state directory match a pattern, or more.
func (g *stateGate) wantFiles(pattern string, count int) {
	g.t.Helper()
	await(g.t, fmt.Sprintf("%d of %s", count, pattern), func() bool {
		found, _ := filepath.Glob(filepath.Join(g.state, pattern)) // the pattern is well-formed
		return len(found) >= count
	})
}

// wantHistory waits until so many versions are in the history. They are kept in the
// background: one that could not be for a while may be there as well.
func (g *stateGate) wantHistory(versions int) { g.wantFiles("lists/*/history/2*", versions) }

const unusable = "state directory unusable, indexes live in temporary files and the next start reads the lists again"

// wantSaidOnce wants the log to say once that the state directory is of no use.
func (g *stateGate) wantSaidOnce(why string) {
	g.t.Helper()
	said := g.records(unusable)
	if len(said) != 1 || said[0].string("level") != "WARN" || !strings.Contains(said[0].string("error"), why) {
		g.t.Errorf("the log says %q, once, want %q: %v", unusable, why, said)
	}
}

// wantTidy waits until nothing is in the state directory but what belongs there,
// and the directory in which a gate that runs works.
func (g *stateGate) wantTidy() {
	g.t.Helper()
	await(g.t, "the state directory to be tidy", func() bool {
		rest := slices.DeleteFunc(leftovers(g.t, g.state), func(name string) bool {
			return !g.ended && filepath.Dir(name) == "work"
		})
		return len(rest) == 0
	})
}

// largeEntries do not fit into a state directory of 1 MiB, smallEntries do.
const (
	smallEntries = 100
	largeEntries = 40_000
)

// TestStateFull has a state directory that is too small for an index: the lists
// serve, what is kept stays whole, and with more space the next index is kept.
func TestStateFull(t *testing.T) {
	t.Parallel()
	privateMounts(t)
	g := newStateGate(t, "1m")
	g.change("small", smallEntries)
	g.start()
	g.wantHistory(1)
	g.change("large", largeEntries)
	g.change("other", largeEntries)
	g.wantSaidOnce("no space left on device")
	g.wantTidy()
	g.wantStored("small", smallEntries)
	waitVerdict(t, g.addr, "x@small0.example", "250")
	waitVerdict(t, g.addr, "x@other0.example", "550")

	remount(t, g.state, 0, "size=64m")
	g.change("third", largeEntries)
	g.waitRecord("state directory is usable again")
	g.wantStored("third", largeEntries)
	g.wantSaidOnce("no space")
	g.stop()
	g.wantTidy()
	g.start()
	waitVerdict(t, g.addr, "x@third0.example", "550")
	noDamage(t, g.log.String())
}

// TestStateFullAtStart has a state directory without room for as much as the key.
func TestStateFullAtStart(t *testing.T) {
	t.Parallel()
	privateMounts(t)
	g := newStateGate(t, "64k")
	filler := filepath.Join(g.state, "filler")
	writeFile(t, filler, strings.Repeat("x", 64<<10))
	g.change("first", smallEntries)
	g.start()
	waitVerdict(t, g.addr, "x@first0.example", "550")
	g.change("second", smallEntries)
	g.wantSaidOnce("no space left on device")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	g.wantTidy()
	g.change("third", smallEntries)
	g.waitRecord("state directory is usable again")
	g.wantHistory(1)
	g.wantStored("third", smallEntries)
	g.stop()
	g.wantTidy()
}

// TestStateReadOnly has a state directory that cannot be written to, from a start
// on and while a gate runs: what is kept is used, and what is new serves.
func TestStateReadOnly(t *testing.T) {
	t.Parallel()
	privateMounts(t)
	g := newStateGate(t, "64m")
	g.change("first", smallEntries)
	g.start()
	g.wantHistory(1)
	g.stop() // what a gate has built it keeps open, which holds up the mount
	g.start()
	remount(t, g.state, unix.MS_BIND|unix.MS_RDONLY, "")
	g.change("second", smallEntries)
	g.change("third", smallEntries)
	g.wantSaidOnce("read-only file system")
	g.wantStored("first", smallEntries)
	remount(t, g.state, unix.MS_BIND, "")
	g.change("fourth", smallEntries)
	g.waitRecord("state directory is usable again")
	g.wantHistory(2)
	g.wantStored("fourth", smallEntries)
	g.stop()
	g.wantTidy()

	remount(t, g.state, unix.MS_BIND|unix.MS_RDONLY, "")
	g.start()
	waitVerdict(t, g.addr, "x@fourth0.example", "550")
	g.change("fifth", smallEntries)
	g.wantSaidOnce("read-only file system")
	g.wantTidy()
	remount(t, g.state, unix.MS_BIND, "")
	g.change("sixth", smallEntries)
	g.waitRecord("state directory is usable again")
	g.wantStored("sixth", smallEntries)
}

// TestStateRemoved removes the state directory of a gate that runs: it serves on,
// and what is new is kept again, under the same key.
func TestStateRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &stateGate{gate: &gate{t: t, dir: dir, ended: true}, list: filepath.Join(dir, "blocked.txt"), state: filepath.Join(dir, "state")}
	writeFile(t, filepath.Join(dir, "config.toml"), setup{more: "[state]\ndir = \"state\"\n"}.config())
	g.change("first", largeEntries)
	g.start()
	g.wantHistory(1)
	g.wantFiles("lists/*/current.bits", 1)
	await(t, "the state directory to be gone", func() bool {
		return os.RemoveAll(g.state) == nil // an error: something was made in it meanwhile
	})
	waitVerdict(t, g.addr, "x@first1.example", "550")
	waitVerdict(t, g.addr, "x@second1.example", "250")
	g.change("second", largeEntries)
	g.waitRecord("state directory is gone, it is made again")
	g.wantHistory(1)
	g.wantStored("second", largeEntries)
	waitVerdict(t, g.addr, "x@first1.example", "250")
	g.stop()
	g.wantTidy()
	// It may have noticed while the directory went.
	noDamage(t, strings.ReplaceAll(g.log.String(), unusable, "gone"))
	g.start()
	waitVerdict(t, g.addr, "x@second1.example", "550")
	noDamage(t, g.log.String())
}
