package store

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWatcherMatters(t *testing.T) {
	w := newWatcher(slog.New(slog.DiscardHandler), false)
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
	w := newWatcher(slog.New(slog.DiscardHandler), false)
	start := time.Unix(1000, 0)
	for n := range 5 {
		w.ring(start.Add(time.Duration(n) * time.Second))
	}
	<-w.rang
	if at := w.take(); !at.Equal(start) {
		t.Errorf("first event at %v", at)
	}
	if at := w.take(); !at.IsZero() {
		t.Errorf("then at %v", at)
	}
}

// Watches follow what is planned.
func TestWatcherSettles(t *testing.T) {
	w := newWatcher(slog.New(slog.DiscardHandler), true)
	if w.fs == nil {
		t.Skip("no file system events here")
	}
	defer w.close()
	dir := inDir(t, "")
	for _, d := range []string{"a", "b"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	for _, plan := range [][]string{{"a"}, {"a", "b"}, {"b"}, {}, {"a"}} {
		for _, d := range plan {
			w.plan(filepath.Join(dir, d), "x")
			w.plan(filepath.Join(dir, d), "y")
		}
		w.settle()
		if got := w.fs.WatchList(); len(got) != len(plan) {
			t.Errorf("planned %v, watched %v", plan, got)
		}
	}
	// What cannot be watched is left to polling, and tried again.
	gone := filepath.Join(dir, "gone")
	w.plan(gone, "x")
	w.settle()
	must(t, os.Mkdir(gone, 0o755))
	w.plan(gone, "x")
	w.settle()
	if got := w.fs.WatchList(); len(got) != 1 || got[0] != gone {
		t.Errorf("watched %v", got)
	}
}
