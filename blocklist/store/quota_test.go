package store

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"spamgate/blocklist/verdict"
)

func TestQuota(t *testing.T) {
	var q quota
	now := time.Unix(1000, 0)
	taken := func(tries int) (n int) {
		for range tries {
			if q.take(now) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{
		{0, eventBurst}, {0, 0}, {eventEvery - 1, 0}, {1, 1}, {5 * eventEvery, 5}, {time.Hour, eventBurst}, {time.Nanosecond, 0},
	} {
		now = now.Add(step.after)
		if got := taken(eventBurst + 1); got != step.want {
			t.Errorf("after %v more: %d were taken, want %d", step.after, got, step.want)
		}
	}
}

// A directory with too many events is not watched until the next look, which its
// events have asked for.
func TestBusyDirectoryRests(t *testing.T) {
	w := newWatcher(slog.New(slog.DiscardHandler), true)
	if w.fs == nil {
		t.Skip("no file system events here")
	}
	defer w.close()
	dir := inDir(t, "")
	w.plan(dir, "spam.txt")
	w.settle()
	go w.run()
	line := fsnotify.Event{Name: filepath.Join(dir, "log"), Op: fsnotify.Write}
	for rang := false; !rang; { // a list's name would ring at once
		select {
		case w.fs.Events <- line:
		case <-w.rang:
			rang = true
		}
	}
	if at := w.take(); at.IsZero() {
		t.Error("no look was asked for")
	}
	if got := w.fs.WatchList(); len(got) != 0 {
		t.Errorf("still watched: %v", got)
	}
	w.plan(dir, "spam.txt")
	w.settle()
	must(t, os.WriteFile(filepath.Join(dir, "spam.txt"), nil, 0o644))
	<-w.rang
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
