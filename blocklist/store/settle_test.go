package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// Touching a file, or writing the same into it, changes nothing.
func TestTouched(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	s := openStill(t, fast(blockList("spam", path)))
	before := s.Set()
	for i := range 3 {
		now := time.Now().Add(time.Duration(i) * time.Second)
		must(t, os.Chtimes(path, now, now))
		if set, err := rescan(t, s); err != nil || set != before {
			t.Errorf("touched: generation %d, %v", set.Generation(), err)
		}
		must(t, os.Rename(write(t, path+"~", "example.com\n"), path))
		if set, err := rescan(t, s); err != nil || set != before {
			t.Errorf("replaced by the same: generation %d, %v", set.Generation(), err)
		}
	}
	// Gone and back: the Set says so, and its generation is the same.
	must(t, os.Remove(path))
	gone, err := rescan(t, s)
	if err == nil || gone.Generation() != 1 || !gone.SharesFilter(before) {
		t.Errorf("gone: generation %d, %v", gone.Generation(), err)
	}
	write(t, path, "example.com\n")
	if back, err := rescan(t, s); err != nil || back.Generation() != 1 || !back.SharesFilter(before) {
		t.Errorf("back: generation %d, %v", back.Generation(), err)
	}
}

// A filter is measured, though another Set has it before its time comes.
func TestProbeOfSharedFilter(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	s := openStill(t, fast(blockList("spam", path)))
	before := s.Set()
	must(t, os.Remove(path))
	gone, err := rescan(t, s)
	if err == nil || gone == before || !gone.SharesFilter(before) || !gone.Stats().Unprobed {
		t.Fatalf("%v, %+v", err, gone.Stats())
	}
	eventually(t, func() string {
		if gone.Stats().Unprobed {
			return "the filter was not measured"
		}
		return ""
	})
}

// A filter is measured, though settling the Set before it ends only then.
func TestProbeAfterLateSettling(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	config := fast(blockList("spam", path))
	quickly := config.Debounce
	config.Debounce = time.Hour // the first filter is never measured: another one would take over what was measured
	s := openStill(t, config)
	old := s.Set()
	measures := func(other *context.CancelFunc) {
		t.Helper()
		eventually(t, func() string {
			if s.probing.Load() == other {
				return "nothing waits to be measured"
			}
			return ""
		})
	}
	measures(nil)
	before := s.probing.Load()
	s.config.Debounce = quickly
	write(t, path, "example.net\n")
	set, err := rescan(t, s)
	if err != nil || set.SharesFilter(old) {
		t.Fatalf("%v, %+v", err, set.Stats())
	}
	measures(before)
	c := s.config
	s.probe(&c, old)
	eventually(t, func() string {
		if set.Stats().Unprobed {
			return "the filter was not measured"
		}
		return ""
	})
}

// Only the list that changed is read again.
func TestOthersNotReadAgain(t *testing.T) {
	dir := inDir(t, "")
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	write(t, a, "example.com\n")
	write(t, b, "example.net\n")
	s := openStill(t, fast(blockList("a", a), blockList("b", b)))
	a0, b0 := versionAt(s, 0), versionAt(s, 1)
	write(t, a, "example.org\n")
	set, err := rescan(t, s)
	must(t, err)
	if versionAt(s, 1) != b0 {
		t.Error("b was read again")
	}
	if versionAt(s, 0) == a0 || set.Generation() != 2 {
		t.Error("a was not")
	}
}

// A file that is still being written is not read, until it has been left alone
// or waited for long enough.
func TestStillBeingWritten(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	c.Debounce, c.MaxDebounce = time.Hour, 2*time.Hour
	s := openStill(t, c)
	write(t, path, "example.net\n")
	again, err := s.look(context.Background())
	must(t, err)
	if s.Set().Generation() != 1 || again.IsZero() {
		t.Errorf("generation %d, again %v", s.Set().Generation(), again)
	}
	// A Set is built ahead meanwhile, and does not go live.
	s.stage(context.Background())
	if s.staged == nil || s.Set().Generation() != 1 {
		t.Fatal("nothing staged, or live already")
	}
	if again, err := s.look(context.Background()); err != nil || again.IsZero() || s.staged == nil || s.Set().Generation() != 1 {
		t.Error("a staged Set went live too soon, or is gone", err)
	}
	staged := s.staged
	s.sources[0].writing = time.Now().Add(-3 * time.Hour)
	if again, err := s.look(context.Background()); err != nil || !again.IsZero() {
		t.Error(again, err)
	}
	set := s.Set()
	if set.Generation() != 2 || listed(t, set, "u@example.net") != verdict.Reject {
		t.Errorf("generation %d", set.Generation())
	}
	if versionAt(s, 0) != staged.results[0].good || !set.SharesFilter(staged.set) || s.staged != nil {
		t.Error("built again, although it was staged")
	}
}

// A staged filter is not kept in memory while another one is made in its place.
func TestStagedIsGivenUp(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	s := openStill(t, c)
	stage := func(text string) {
		write(t, path, text)
		s.stage(context.Background())
		if s.staged == nil {
			t.Fatal("nothing staged")
		}
	}
	stage("example.net\n")
	if staged := s.staged; s.prebuilt(staged.results) != staged.snapshot || s.staged != staged {
		t.Error("not used, although it is of what was read")
	}
	if live := []scanResult{s.sources[0].live}; s.prebuilt(live) != nil || s.staged != nil {
		t.Error("kept, although it is of no use")
	}
	stage("example.org\n")
	c.Lists = []List{c.Lists[0], blockList("gone", path+".gone")}
	if err := s.Reload(context.Background(), c); err == nil || s.staged != nil {
		t.Errorf("kept while a configuration is loaded: %v", err)
	}
}

// What was staged and then changed again never goes live, nor is it the last
// good version of what comes then.
func TestStagedThenChanged(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	s := openStill(t, fast(blockList("spam", path)))
	for text, want := range map[string]string{"example.org\n": "u@example.org", "": "u@example.com", "\x00": "u@example.com"} {
		write(t, path, "example.net\n") // half of what is to come
		s.stage(context.Background())
		write(t, path, text)
		set, _ := rescan(t, s)
		if listed(t, set, want) != verdict.Reject || listed(t, set, "u@example.net") != verdict.Accept {
			t.Errorf("then %q: want %s listed, alone", text, want)
		}
		write(t, path, "example.com\n")
		rescan(t, s)
	}
}
