package dirwatch

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestWatcherMatters(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), "files", false)
	w.names = map[string][]string{
		"/":          {"etc"},
		"/etc/lists": {"*.txt", "a[b].conf"},
	}
	for path, want := range map[string]bool{
		"/etc":                 true,
		"/var":                 false,
		"/etc/lists":           true, // its own watch has ended
		"/etc/lists/a.txt":     true,
		"/etc/lists/.a.txt":    false,
		"/etc/lists/a.txt~":    false,
		"/etc/lists/a[b].conf": true, // a link's target is no pattern
		"/etc/lists/sub/a.txt": false,
		"/etc/other":           false,
	} {
		if w.matters(path) != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
}

// Rings are not lost, and do not block.
func TestWatcherRing(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), "files", false)
	start := time.Unix(1000, 0)
	for n := range 5 {
		w.Ring(start.Add(time.Duration(n) * time.Second))
	}
	<-w.rang
	if instant := w.Take(); !instant.Equal(start) {
		t.Errorf("first event at %v", instant)
	}
	if instant := w.Take(); !instant.IsZero() {
		t.Errorf("then at %v", instant)
	}
}

// Watches follow what is planned.
func TestWatcherSettles(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), "files", true)
	if w.fs == nil {
		t.Skip("no file system events here")
	}
	defer w.Close()
	dir := inDir(t, "")
	for _, d := range []string{"a", "b"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	for _, plan := range [][]string{{"a"}, {"a", "b"}, {"b"}, {}, {"a"}} {
		for _, d := range plan {
			w.Plan(filepath.Join(dir, d), "x")
			w.Plan(filepath.Join(dir, d), "y")
		}
		w.Settle()
		if got := w.fs.WatchList(); len(got) != len(plan) {
			t.Errorf("planned %v, watched %v", plan, got)
		}
	}
	// What cannot be watched is left to polling, and tried again.
	gone := filepath.Join(dir, "gone")
	w.Plan(gone, "x")
	w.Settle()
	must(t, os.Mkdir(gone, 0o755))
	w.Plan(gone, "x")
	w.Settle()
	if got := w.fs.WatchList(); len(got) != 1 || got[0] != gone {
		t.Errorf("watched %v", got)
	}
}

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
	w := New(slog.New(slog.DiscardHandler), "files", true)
	if w.fs == nil {
		t.Skip("no file system events here")
	}
	defer w.Close()
	dir := inDir(t, "")
	w.Plan(dir, "spam.txt")
	w.Settle()
	line := fsnotify.Event{Name: filepath.Join(dir, "log"), Op: fsnotify.Write}
	for rang := false; !rang; { // a list's name would ring at once
		select {
		case w.fs.Events <- line:
		case <-w.rang:
			rang = true
		}
	}
	if instant := w.Take(); instant.IsZero() {
		t.Error("no look was asked for")
	}
	if got := w.fs.WatchList(); len(got) != 0 {
		t.Errorf("still watched: %v", got)
	}
	w.Plan(dir, "spam.txt")
	w.Settle()
	must(t, os.WriteFile(filepath.Join(dir, "spam.txt"), nil, 0o644))
	<-w.rang
}

// Lost events may have been about any file.
func TestOverflow(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), "files", true)
	if w.fs == nil {
		t.Skip("no file system events here")
	}
	defer w.Close()
	w.fs.Errors <- fsnotify.ErrEventOverflow
	<-w.Rang()
	if w.Take().IsZero() {
		t.Error("no time")
	}
}

func write(tb testing.TB, path, text string) string {
	tb.Helper()
	must(tb, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// inDir is a path in a new directory, free of symbolic links.
func inDir(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	must(tb, err)
	return filepath.Join(dir, name)
}
