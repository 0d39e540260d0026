package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/atomicfile"
)

// pinnedList is a list of one entry, a.example, that is pinned there.
func pinnedList(t *testing.T, history int) (c Config, path string, log *logBuffer) {
	t.Helper()
	log = new(logBuffer)
	path = write(t, inDir(t, "list.txt"), "a.example\n")
	c = stateful(t, blockList("spam", path))
	c.History, c.Logger = history, log.logger()
	return c, path, log
}

func pinNow(t *testing.T, s *Store) blocklist.Pin {
	t.Helper()
	p, err := s.Pin(context.Background(), "spam", blocklist.Pin{Since: time.Now().UTC(), Who: "alice", Why: "outbreak"})
	must(t, err)
	return p
}

// wantServed wants one of two entries to serve, and the list to be pinned, or not, and held, or not.
func wantServed(t *testing.T, set *blocklist.Set, entry string, pinned, held bool) {
	t.Helper()
	l := set.Stats().Lists[0]
	for _, name := range []string{"a.example", "b.example"} {
		want := verdict.Accept
		if name == entry {
			want = verdict.Reject
		}
		if got := listed(t, set, "x@"+name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if (l.Pinned != nil) != pinned || errors.Is(l.Err, ErrPinned) != held || l.Held != held {
		t.Errorf("pinned %+v, held %t, error %v; want pinned %t, held %t", l.Pinned, l.Held, l.Err, pinned, held)
	}
}

func TestPin(t *testing.T) {
	c, path, log := pinnedList(t, 2)
	s := openStill(t, c)
	p := pinNow(t, s)
	if p.Entries != 1 || p.Sum != s.Set().Stats().Lists[0].Sum {
		t.Errorf("pin %+v", p)
	}
	wantServed(t, s.Set(), "a.example", true, false)

	replace(t, path, "b.example\n# more\n")
	set, err := rescan(t, s)
	if !errors.Is(err, ErrPinned) || !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "another version (entries: 1); unpin spam") {
		t.Errorf("rescan: %v", err)
	}
	wantServed(t, set, "a.example", true, true)
	if err := s.Accept(context.Background(), "spam"); !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), "unpin spam") {
		t.Errorf("accept: %v", err)
	}
	before := set.Generation()
	if set, _ = rescan(t, s); set.Generation() != before {
		t.Error("another look made another generation")
	}

	// A reload, and a start, which finds the index.
	must(t, s.Reload(context.Background(), c))
	wantServed(t, s.Set(), "a.example", true, true)
	must(t, s.Close())
	s = openStill(t, c)
	wantServed(t, s.Set(), "a.example", true, true)

	// The pinned content comes back, and goes again.
	replace(t, path, "a.example\n")
	set, err = rescan(t, s)
	must(t, err)
	wantServed(t, set, "a.example", true, false)
	replace(t, path, "b.example\n")
	set, _ = rescan(t, s)
	wantServed(t, set, "a.example", true, true)

	must(t, s.Unpin(context.Background(), "spam"))
	wantServed(t, s.Set(), "b.example", false, false)
	if err := s.Unpin(context.Background(), "spam"); !errors.Is(err, ErrNotPinned) {
		t.Errorf("unpinned twice: %v", err)
	}
	if got := log.lines("msg=\"list pinned"); len(got) != 2 || !strings.Contains(got[0], "by=alice why=outbreak") {
		t.Errorf("log: %q", got)
	}
	if got := log.lines("msg=\"list unpinned\""); len(got) != 1 {
		t.Errorf("log: %q", got)
	}
}

// A pinned version outlives the loss of its index, other settings of the list, and more
// versions than the history keeps; with [state] history = 0, too.
func TestPinKept(t *testing.T) {
	for _, history := range []int{0, 1} {
		c, path, _ := pinnedList(t, history)
		s := openStill(t, c)
		p := pinNow(t, s)
		for _, text := range []string{"c.example\n", "d.example\n", "b.example\n"} {
			replace(t, path, text)
			rescan(t, s)
		}
		exact := c
		exact.Lists = []List{blockList("spam", path)}
		exact.Lists[0].Exact = true
		must(t, s.Reload(context.Background(), exact))
		wantServed(t, s.Set(), "a.example", true, true)
		if listed(t, s.Set(), "x@sub.a.example") != verdict.Accept {
			t.Error("it serves with the old settings")
		}
		must(t, s.Close())
		must(t, os.Remove(filepath.Join(c.StateDir, ListName("spam"), segmentName)))
		s = openStill(t, c)
		wantServed(t, s.Set(), "a.example", true, true)
		must(t, s.Close())

		// Neither index nor history: the list has no version, and says what to do.
		must(t, os.Remove(filepath.Join(c.StateDir, ListName("spam"), segmentName)))
		must(t, os.RemoveAll(filepath.Join(c.StateDir, ListName("spam"), historyName)))
		_, err := Open(context.Background(), c)
		if !errors.Is(err, ErrPinned) || !strings.Contains(err.Error(), "cannot be restored") || !strings.Contains(err.Error(), "unpin spam") {
			t.Errorf("history %d: a start without the version: %v", history, err)
		}
		must(t, UnpinList(c, "spam"))
		s = openStill(t, c)
		wantServed(t, s.Set(), "b.example", false, false)
		if _, err := s.Pin(context.Background(), "spam", p); err == nil {
			t.Error("pinned at a version that is gone")
		}
		wantServed(t, s.Set(), "b.example", false, false)
	}
}

// A list may be pinned at a version that does not serve.
func TestPinEarlier(t *testing.T) {
	c, path, _ := pinnedList(t, 3)
	s := openStill(t, c)
	first := s.Set().Stats().Lists[0].Sum
	s.running.Wait()
	replace(t, path, "b.example\n")
	_, err := rescan(t, s)
	must(t, err)
	_, err = s.Pin(context.Background(), "spam", blocklist.Pin{Sum: first, Entries: 1, Since: time.Now()})
	must(t, err)
	wantServed(t, s.Set(), "a.example", true, true)
	must(t, s.Unpin(context.Background(), "spam"))
	wantServed(t, s.Set(), "b.example", false, false)
}

// A pin at a version that is nowhere leaves the pin that there was.
func TestPinStays(t *testing.T) {
	c, _, _ := pinnedList(t, 1)
	s := openStill(t, c)
	was := pinNow(t, s)
	if _, err := s.Pin(context.Background(), "spam", blocklist.Pin{Sum: strings.Repeat("ab", 32), Since: time.Now()}); err == nil {
		t.Error("pinned at a version that is nowhere")
	}
	if is, err := ReadPin(c.StateDir, "spam"); err != nil || is == nil || is.Sum != was.Sum {
		t.Errorf("pinned at %+v (%v), want %s", is, err, was.Sum)
	}
	wantServed(t, s.Set(), "a.example", true, false)
}

// Without a running Store the pin counts from the next start, whatever the files hold then.
func TestPinBeforeStart(t *testing.T) {
	c, path, _ := pinnedList(t, 1)
	sum, err := Opener{}.ContentSum([]string{path})
	must(t, err)
	must(t, PinList(context.Background(), c, "spam", blocklist.Pin{Sum: sum, Entries: 1, Since: time.Now()}))
	replace(t, path, "b.example\n")
	readOnly := c
	readOnly.ReadOnly = true
	wantServed(t, openStill(t, c).Set(), "a.example", true, true)
	wantServed(t, openStill(t, readOnly).Set(), "a.example", true, true)
}

// A damaged pin is still a pin: what serves goes on.
func TestPinDamaged(t *testing.T) {
	c, path, _ := pinnedList(t, 1)
	s := openStill(t, c)
	pinNow(t, s)
	write(t, filepath.Join(c.StateDir, ListName("spam"), pinName), "{")
	replace(t, path, "b.example\n")
	set, err := rescan(t, s)
	if !errors.Is(err, ErrPinned) || !strings.Contains(err.Error(), "unpin spam") {
		t.Errorf("rescan: %v", err)
	}
	wantServed(t, set, "a.example", true, true)
	must(t, s.Unpin(context.Background(), "spam"))
	wantServed(t, s.Set(), "b.example", false, false)
}

// Another build of the program reads the pinned version again from the history, since the files
// have another one.
func TestPinOfAnotherProgram(t *testing.T) {
	c, path, _ := pinnedList(t, 1)
	s := openStill(t, c)
	pinNow(t, s)
	old := s.sources[0].live.good
	old.stale = true
	replace(t, path, "b.example\n")
	set, _ := rescan(t, s)
	wantServed(t, set, "a.example", true, true)
	if current := s.sources[0].live.good; current == old || current.stale {
		t.Error("the pinned version was not read again")
	}
}

// A pin that another command ends at once says so.
func TestPinUnpinnedMeanwhile(t *testing.T) {
	c, path, _ := pinnedList(t, 1)
	s := openStill(t, c)
	sum := s.Set().Stats().Lists[0].Sum
	replace(t, path, "b.example\n")
	rescan(t, s)
	var ended atomic.Bool
	var unpins sync.WaitGroup
	unpins.Go(func() {
		for !ended.Load() {
			_ = UnpinList(c, "spam") // it may be unpinned already
		}
	})
	for range 50 {
		_, err := s.Pin(context.Background(), "spam", blocklist.Pin{Sum: sum})
		if err != nil && strings.Contains(err.Error(), "%!") {
			t.Error(err)
		}
	}
	ended.Store(true)
	unpins.Wait()
}

// A pin that fails leaves one that a command made before the Store looked.
func TestFailedPinLeavesAnother(t *testing.T) {
	c, _, _ := pinnedList(t, 1)
	s := openStill(t, c)
	sum := s.Set().Stats().Lists[0].Sum
	must(t, PinList(t.Context(), c, "spam", blocklist.Pin{Sum: sum, Entries: 1, Since: time.Now().UTC()}))
	if _, err := s.Pin(t.Context(), "spam", blocklist.Pin{Sum: strings.Repeat("0", 64)}); err == nil {
		t.Error("pinned at a version that nobody has")
	}
	if p, err := ReadPin(c.StateDir, "spam"); err != nil || p == nil || p.Sum != sum {
		t.Errorf("the pin is %+v, %v; want that of the command", p, err)
	}
}

// TestPinnedVersionStays: the history does not drop the version to which a list is pinned.
func TestPinnedVersionStays(t *testing.T) {
	c, _, _ := pinnedList(t, 5)
	s := openStill(t, c)
	s.running.Wait()
	pinNow(t, s)
	for _, text := range []string{"b.example\n", "c.example\n", "d.example\n"} {
		must(t, KeepVersion(t.Context(), c.StateDir, "spam", Kept{Path: "/list.txt", Entries: 1, Content: strings.NewReader(text)}))
	}
	must(t, dropOld(s.state.tree, path.Join(ListName("spam"), historyName), 1))
	if got := strings.Join(kept(t, c.StateDir), ""); got != "d.example\nc.example\na.example\n" {
		t.Errorf("%q", got)
	}
}

// TestPackedAsItWasRead: a file that has changed since it was read is not kept as what was read.
func TestPackedAsItWasRead(t *testing.T) {
	file := write(t, inDir(t, "spam.txt"), "one.example\n")
	was := stamp{Path: file, Digest: sha256.Sum256([]byte("two.example\n"))}
	was.Size = int64(len("two.example\n"))
	if err := packFile(t.Context(), atomicfile.In(t.TempDir()), "0.zst", was, func() {}); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
}
