package blocklist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestOpen(t *testing.T) {
	dir := inDir(t, "")
	spam := write(t, filepath.Join(dir, "spam.txt"), "example.com\nno entry\n!ok.example.com\nexample.com\n")
	var log logBuffer
	c := fast(blockList("spam", spam), allowList("friends", write(t, filepath.Join(dir, "friends.txt"), "# nobody\n")))
	c.Logger = log.logger()
	s := openStore(t, c)
	set := s.Set()
	if set.Generation() != 1 || listed(t, set, "u@example.com") != Reject {
		t.Errorf("generation %d", set.Generation())
	}
	stats := set.Stats()
	l := stats.Lists[0]
	if l.Name != "spam" || l.Type != Block || l.Action != Reject || l.Stages != Envelope|Header ||
		l.Entries != 3 || l.Exceptions != 1 || l.Duplicates != 1 || l.Invalid != 1 || l.Bytes == 0 || l.Loaded.IsZero() ||
		len(l.Files) != 1 || l.Files[0].Path != spam || l.Files[0].Entries != 3 || l.Files[0].Invalid != 1 || l.Files[0].Size != 49 ||
		len(l.Problems) != 1 || l.Problems[0].File != spam || l.Problems[0].Line != 2 {
		t.Errorf("%+v", l)
	}
	if stats.Generation != 1 || stats.Entries != 3 || stats.Invalid != 1 || stats.Lists[1].Type != Allow {
		t.Errorf("%+v", stats)
	}
	for _, want := range []string{
		`msg="lists live" generation=1 list=spam,friends entries_before=0 entries=3 invalid=1`,
		`level=WARN msg="invalid line skipped" list=spam file=` + spam + ` line=2 text="no entry"`,
		`level=WARN msg="invalid lines" list=spam count=1`,
	} {
		if len(log.lines(want)) != 1 {
			t.Errorf("not in the log: %s\n%s", want, log.text.String())
		}
	}
}

// Of many invalid lines the log shows the first ten and the number.
func TestLogProblems(t *testing.T) {
	var log logBuffer
	c := fast(blockList("spam", write(t, inDir(t, "spam.txt"), manyLines(50, 30))))
	c.Logger = log.logger()
	build(t, c)
	if n := len(log.lines("invalid line skipped")); n != 10 {
		t.Errorf("%d lines", n)
	}
	if len(log.lines("count=30")) != 1 {
		t.Error("no count")
	}
}

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
	if err == nil || gone.Generation() != 1 || gone.filter != before.filter {
		t.Errorf("gone: generation %d, %v", gone.Generation(), err)
	}
	write(t, path, "example.com\n")
	if back, err := rescan(t, s); err != nil || back.Generation() != 1 || back.filter != before.filter {
		t.Errorf("back: generation %d, %v", back.Generation(), err)
	}
}

// Only the list that changed is read again.
func TestOthersNotReadAgain(t *testing.T) {
	dir := inDir(t, "")
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	write(t, a, "example.com\n")
	write(t, b, "example.net\n")
	s := openStill(t, fast(blockList("a", a), blockList("b", b)))
	before := s.Set()
	write(t, a, "example.org\n")
	set, err := rescan(t, s)
	must(t, err)
	if set.lists[1].version != before.lists[1].version {
		t.Error("b was read again")
	}
	if set.lists[0].version == before.lists[0].version || set.Generation() != 2 {
		t.Error("a was not")
	}
}

// Files come to a glob and go.
func TestGlobChanges(t *testing.T) {
	dir := inDir(t, "")
	write(t, dir+"/a.txt", "example.com\n")
	s := openStore(t, fast(blockList("spam", dir+"/*.txt")))
	write(t, dir+"/b.txt", "example.net\n")
	await(t, s, 2)
	for _, address := range []string{"u@example.com", "u@example.net"} {
		if listed(t, s.Set(), address) != Reject {
			t.Errorf("%s is not listed", address)
		}
	}
	// What editors leave beside is no list.
	must(t, os.Symlink("user@host.123", dir+"/.#a.txt"))
	write(t, dir+"/.a.txt.swp", "\x00")
	write(t, dir+"/a.txt~", "\x00")
	must(t, os.Remove(dir+"/a.txt"))
	set := await(t, s, 3)
	if l := set.Stats().Lists[0]; l.Err != nil || len(l.Files) != 1 {
		t.Errorf("%+v", l)
	}
	if listed(t, set, "u@example.com") != Accept || listed(t, set, "u@example.net") != Reject {
		t.Error("a.txt has gone, b.txt has not")
	}
	// When the last one goes the list is missing, not empty.
	must(t, os.Remove(dir+"/b.txt"))
	set, err := rescan(t, s)
	if !errors.Is(err, ErrNoMatch) || listed(t, set, "u@example.net") != Reject {
		t.Error(err)
	}
}

// A directory that is not there yet is waited for.
func TestMissingDirectory(t *testing.T) {
	root := inDir(t, "")
	path := filepath.Join(root, "etc/lists/spam.txt")
	l := blockList("spam", path)
	l.Optional = true
	s := openStore(t, fast(l))
	for n := range 3 {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, fmt.Sprintf("example.com\nexample%d.net\n", n))
		set := await(t, s, uint64(n+2))
		if listed(t, set, fmt.Sprintf("u@example%d.net", n)) != Reject {
			t.Errorf("round %d: not listed", n)
		}
		must(t, os.RemoveAll(filepath.Join(root, "etc")))
		awaitError(t, s)
	}
}

// awaitError waits until the store has noticed that the first list fails. No new
// generation tells of that.
func awaitError(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	for {
		s.swapMu.Lock()
		swap := s.swap
		s.swapMu.Unlock()
		if s.Set().Stats().Lists[0].Err != nil {
			return
		}
		select {
		case <-swap:
		case <-ctx.Done():
			t.Fatal("the failure went unnoticed")
		}
	}
}

// Without events, by polls.
func TestPolling(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	c.PollInterval = 20 * time.Millisecond
	s, err := open(context.Background(), c, false)
	must(t, err)
	defer s.Close()
	for n := range 3 {
		write(t, path, fmt.Sprintf("example%d.net\n", n))
		if set := await(t, s, uint64(n+2)); listed(t, set, fmt.Sprintf("u@example%d.net", n)) != Reject {
			t.Errorf("round %d: not listed", n)
		}
	}
}

// Lost events: the store looks at everything.
func TestEventOverflow(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	s := openStore(t, c)
	_, err := rescan(t, s)
	must(t, err)
	// As if the events about this file had been among the lost ones.
	s.watcher.mu.Lock()
	s.watcher.names = map[string][]string{}
	s.watcher.mu.Unlock()
	write(t, path, "example.net\n")
	s.watcher.fs.Errors <- fsnotify.ErrEventOverflow
	if set := await(t, s, 2); listed(t, set, "u@example.net") != Reject {
		t.Error("not listed")
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
	if set.Generation() != 2 || listed(t, set, "u@example.net") != Reject {
		t.Errorf("generation %d", set.Generation())
	}
	if set.lists[0].version != staged.readings[0].good || set.filter != staged.set.filter || s.staged != nil {
		t.Error("built again, although it was staged")
	}
}

// A list that is written all the time does not hold up the others.
func TestBusyNeighbour(t *testing.T) {
	dir := inDir(t, "")
	busy := write(t, filepath.Join(dir, "busy.txt"), "example.com\n")
	path := write(t, filepath.Join(dir, "spam.txt"), "example.com\n")
	c := fast(blockList("busy", busy), blockList("spam", path))
	c.MaxDebounce = time.Hour
	s := openStore(t, c)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				os.WriteFile(busy, fmt.Appendf(nil, "example%d.org\n", n), 0o644)
			}
		}
	})
	write(t, path, "example.net\n")
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	for set := s.Set(); listed(t, set, "u@example.net") != Reject; {
		var err error
		if set, err = s.Await(ctx, set.Generation()+1); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	writer.Wait()
}

// After a burst of changes the Set is what is on disk.
func TestBurst(t *testing.T) {
	dir := inDir(t, "")
	write(t, dir+"/a.txt", "example.com\n")
	s := openStore(t, fast(blockList("spam", dir+"/*.txt")))
	const files = 50
	for n := range 2000 {
		path := fmt.Sprintf("%s/%d.txt", dir, n%files)
		if n%3 == 0 {
			os.Remove(path)
		} else {
			write(t, path, fmt.Sprintf("host%d.example\n", n))
		}
	}
	set, err := rescan(t, s)
	must(t, err)
	want := 0
	for n := range files {
		text, err := os.ReadFile(fmt.Sprintf("%s/%d.txt", dir, n))
		if err != nil {
			continue
		}
		want++
		if listed(t, set, "u@"+strings.TrimSpace(string(text))) != Reject {
			t.Errorf("%s is not listed", text)
		}
	}
	if got := set.Stats().Entries; got != want+1 {
		t.Errorf("%d entries, want %d", got, want+1)
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
		if listed(t, set, want) != Reject || listed(t, set, "u@example.net") != Accept {
			t.Errorf("then %q: want %s listed, alone", text, want)
		}
		write(t, path, "example.com\n")
		rescan(t, s)
	}
}

func TestReload(t *testing.T) {
	dir := inDir(t, "")
	a := write(t, filepath.Join(dir, "a.txt"), "example.com\n")
	b := write(t, filepath.Join(dir, "b.txt"), "example.net\n")
	s := openStore(t, fast(blockList("a", a)))
	before := s.Set()
	ctx := context.Background()

	// The same list with another action and name is not read again.
	l := blockList("renamed", a)
	l.Action = Tag
	must(t, s.Reload(ctx, fast(l)))
	set := s.Set()
	if set.Generation() != 2 || listed(t, set, "u@example.com") != Tag {
		t.Errorf("generation %d", set.Generation())
	}
	if set.lists[0].version != before.lists[0].version || set.filter != before.filter {
		t.Error("read again")
	}

	// Another option, and it is.
	l.Exact = true
	must(t, s.Reload(ctx, fast(l, blockList("b", b))))
	set = s.Set()
	if listed(t, set, "u@www.example.com") != Accept || listed(t, set, "u@example.net") != Reject {
		t.Error("the new options do not count")
	}

	// Errors change nothing.
	missing := blockList("missing", filepath.Join(dir, "missing.txt"))
	for _, c := range []Config{fast(l, missing), fast(List{}), {Confirm: true, Family: "none"}} {
		if err := s.Reload(ctx, c); err == nil || s.Set() != set {
			t.Errorf("error %v, generation %d", err, s.Set().Generation())
		}
	}
	if err := s.Reload(ctx, fast(missing)); !strings.Contains(err.Error(), missing.Paths[0]) {
		t.Error(err)
	}

	// A list that has become bad keeps its last good version over a reload.
	write(t, b, "\x00")
	must(t, s.Reload(ctx, fast(blockList("b", b))))
	if _, err := rescan(t, s); err == nil {
		t.Error("no error")
	}
	if st := s.Set().Stats().Lists[0]; !st.LastGood || listed(t, s.Set(), "u@example.net") != Reject {
		t.Errorf("%+v", st)
	}

	// The new list is watched, the new times count.
	write(t, b, "example.org\n")
	if set := await(t, s, s.Set().Generation()+1); listed(t, set, "u@example.org") != Reject {
		t.Error("not listed")
	}
	c := fast(blockList("b", b))
	c.Family = "classic:RS,JS"
	must(t, s.Reload(ctx, c))
	if st := s.Set().Stats(); st.Family != c.Family || st.Hashes != 2 {
		t.Errorf("%+v", st)
	}
}

// A reload with a shorter poll interval ends the long wait before.
func TestReloadPollInterval(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	s, err := open(context.Background(), c, false)
	must(t, err)
	defer s.Close()
	c.PollInterval = 20 * time.Millisecond
	must(t, s.Reload(context.Background(), c))
	write(t, path, "example.net\n")
	await(t, s, 3)
}

// The counters go on over swaps.
func TestCountersSurvive(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	s := openStill(t, fast(blockList("spam", path)))
	old := s.Set()
	old.Lookup(Envelope, parse(t, "u@example.com"))
	write(t, path, "example.net\n")
	set, err := rescan(t, s)
	must(t, err)
	set.Lookup(Envelope, parse(t, "u@example.com"))
	if set == old || set.Lookups() != 2 || old.Lookups() != 2 || set.Maybes() != 1 {
		t.Errorf("%d lookups, %d maybes", set.Lookups(), set.Maybes())
	}
}

func TestClosed(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	s, err := Open(context.Background(), c)
	must(t, err)
	awaited := make(chan error)
	go func() {
		_, err := s.Await(context.Background(), 100)
		awaited <- err
	}()
	must(t, s.Close())
	must(t, s.Close())
	if err := <-awaited; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"Rescan": s.Rescan(context.Background()),
		"Reload": s.Reload(context.Background(), c),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if listed(t, s.Set(), "u@example.com") != Reject {
		t.Error("the last Set is of no use")
	}
}

func TestContext(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	s := openStore(t, c)
	write(t, path, "example.net\n")
	if err := s.Rescan(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Rescan: %v", err)
	}
	if err := s.Reload(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Reload: %v", err)
	}
	if _, err := s.Await(ended, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("Await: %v", err)
	}
	if l := s.Set().Stats().Lists[0]; l.Err != nil {
		t.Errorf("the list is said to have failed: %v", l.Err)
	}
}

// After Close nothing runs, and nothing is open; memory does not pile up.
func TestNoLeaks(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	use := func() {
		s, err := Open(context.Background(), fast(blockList("spam", path), blockList("glob", filepath.Dir(path)+"/*.txt")))
		must(t, err)
		for n := range 20 {
			write(t, path, fmt.Sprintf("example%d.com\n", n))
			_, err := rescan(t, s)
			must(t, err)
		}
		must(t, s.Close())
	}
	use() // what is made once and stays
	goroutines, files, memory := settledGoroutines(), openFiles(), heap()
	for range 3 {
		use()
	}
	if n := settledGoroutines(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if now := openFiles(); !slices.Equal(now, files) {
		t.Errorf("open files %q, before %q", now, files)
	}
	if n := heap(); n > memory+16<<20 { // half a bitmap
		t.Errorf("%d MiB in use, %d before", n>>20, memory>>20)
	}
}

// settledGoroutines counts goroutines once those that are ending have ended.
func settledGoroutines() int {
	n := runtime.NumGoroutine()
	for range 1000 {
		runtime.Gosched()
		n = min(n, runtime.NumGoroutine())
	}
	return n
}

// openFiles lists what this process has open, where /proc tells.
func openFiles() []string {
	var open []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, target)
		}
	}
	slices.Sort(open)
	return open
}
