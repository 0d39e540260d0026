package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// Files come to a glob and go.
func TestGlobChanges(t *testing.T) {
	dir := inDir(t, "")
	write(t, dir+"/a.txt", "example.com\n")
	s := openStore(t, fast(blockList("spam", dir+"/*.txt")))
	replace(t, dir+"/b.txt", "example.net\n")
	await(t, s, 2)
	for _, address := range []string{"u@example.com", "u@example.net"} {
		if listed(t, s.Set(), address) != verdict.Reject {
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
	if listed(t, set, "u@example.com") != verdict.Accept || listed(t, set, "u@example.net") != verdict.Reject {
		t.Error("a.txt has gone, b.txt has not")
	}
	// When the last one goes the list is missing, not empty.
	must(t, os.Remove(dir+"/b.txt"))
	set, err := rescan(t, s)
	if !errors.Is(err, ErrNoMatch) || listed(t, set, "u@example.net") != verdict.Reject {
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
		replace(t, path, fmt.Sprintf("example.com\nexample%d.net\n", n))
		set := await(t, s, uint64(n+2))
		if listed(t, set, fmt.Sprintf("u@example%d.net", n)) != verdict.Reject {
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
		if set := await(t, s, uint64(n+2)); listed(t, set, fmt.Sprintf("u@example%d.net", n)) != verdict.Reject {
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
	s.mu.Lock()
	s.watcher.Settle() // nothing is planned: nothing is watched
	write(t, path, "example.net\n")
	s.mu.Unlock()
	s.watcher.Ring(time.Now())
	if set := await(t, s, 2); listed(t, set, "u@example.net") != verdict.Reject {
		t.Error("not listed")
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
	for set := s.Set(); listed(t, set, "u@example.net") != verdict.Reject; {
		var err error
		if set, err = s.Await(ctx, set.Generation()+1); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	writer.Wait()
}

// A list is followed by events beside files that are written all the time, and in a
// directory below such ones.
func TestBusyDirectories(t *testing.T) {
	dir := inDir(t, "")
	must(t, os.Mkdir(filepath.Join(dir, "lists"), 0o755))
	path := write(t, filepath.Join(dir, "lists", "spam.txt"), "example.com\n")
	s := openStore(t, fast(blockList("spam", path)))
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			for _, name := range []string{"a.log", "lists/a.log", "lists/b.log"} {
				select {
				case <-stop:
					return
				default:
					os.WriteFile(filepath.Join(dir, name), []byte("line\n"), 0o644)
				}
			}
		}
	}()
	for n := range 3 {
		replace(t, path, "example.net\n"+string(rune('a'+n))+".example\n")
		set := await(t, s, uint64(n+2))
		if listed(t, set, "u@"+string(rune('a'+n))+".example") != verdict.Reject {
			t.Errorf("round %d: not listed", n)
		}
	}
	close(stop)
	<-done
}
