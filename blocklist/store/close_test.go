package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

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
	if listed(t, s.Set(), "u@example.com") != verdict.Reject {
		t.Error("the last Set is of no use")
	}
}

// A look that begins when the Store is closed already, and whose context has not
// been told, does nothing: nobody would clear up what it makes.
func TestLookAfterClose(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	before := s.Set()
	must(t, s.Close())
	write(t, path, "example.net\n")
	s.sources[0].writing = time.Now().Add(-time.Hour) // it would be read at once
	if _, err := s.look(context.Background()); !errors.Is(err, ErrClosed) || s.Set() != before {
		t.Errorf("%v, generation %d", err, s.Set().Generation())
	}
	if left, err := os.ReadDir(filepath.Join(c.StateDir, workName)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Who comes while the Store is closed is turned away, and meets nothing that is
// being taken down (for the race detector).
func TestCloseWhileRescanning(t *testing.T) {
	for i := range 20 {
		path := write(t, inDir(t, "spam.txt"), "example.com\n")
		s, err := Open(context.Background(), stateful(t, blockList("spam", path)))
		must(t, err)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for range 30 {
					s.Rescan(context.Background())
				}
			})
		}
		write(t, path, fmt.Sprintf("example.com\nhost%d.example\n", i))
		must(t, s.Close())
		callers.Wait()
		if err := s.Rescan(context.Background()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
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
	s := openStill(t, c) // a loop might find the file half written
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

// A Build leaves nothing that runs, nor does a Close while somebody is about to
// make another Set live: the kernel is asked for huge pages before it returns, or
// not at all.
func TestNothingGoesOn(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := fast(blockList("spam", path))
	nothing := func(after string) {
		t.Helper()
		stacks := make([]byte, 1<<20)
		if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("UseHugePages")) {
			t.Fatalf("%s: UseHugePages runs:\n%s", after, stacks)
		}
	}
	build(t, c)
	nothing("Build")

	s := openStill(t, c)
	s.running.Wait()
	s.mu.Lock()
	results := []scanResult{s.sources[0].live}
	set, err := s.newSet(context.Background(), s.config, results, 2, time.Now())
	must(t, err)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.ctx.Done()
	s.publish(set, results)
	s.mu.Unlock()
	must(t, <-closed)
	nothing("Close")
}

// After Close nothing runs, and nothing is open or mapped; over 100 swaps memory
// does not pile up.
func TestNoLeaks(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := stateful(t, blockList("spam", path), blockList("glob", filepath.Dir(path)+"/*.txt"))
	c.History = 2
	use := func() {
		s, err := Open(context.Background(), c)
		must(t, err)
		for n := range 34 {
			write(t, path, fmt.Sprintf("example%d.com\n", n))
			_, err := rescan(t, s)
			must(t, err)
		}
		must(t, s.Close())
	}
	use()            // what is made once and stays
	memory := heap() // and what tests before have left goes
	goroutines, files := settledGoroutines(), openFiles()
	for range 3 {
		use()
	}
	eventually(t, func() string { // mappings go with the Sets that the collector finds
		current := heap()
		switch n, more := settledGoroutines(), without(openFiles(), files); {
		case n > goroutines:
			return fmt.Sprintf("%d goroutines, %d before", n, goroutines)
		case len(more) > 0:
			return fmt.Sprintf("files left open: %q", more)
		case mappedIndexes() > 0:
			return fmt.Sprintf("%d indexes are still mapped", mappedIndexes())
		case current > memory+16<<20: // half a bitmap
			return fmt.Sprintf("%d MiB in use, %d before", current>>20, memory>>20)
		}
		return ""
	})
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

// mappedIndexes counts the indexes that this process has mapped, where /proc
// tells.
func mappedIndexes() int {
	maps, _ := os.ReadFile("/proc/self/maps")
	return bytes.Count(maps, []byte(".seg"))
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
