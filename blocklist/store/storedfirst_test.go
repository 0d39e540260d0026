package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// numberedLines is a list of so many lines.
func numberedLines(family string, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%s%d.example\n", family, i)
	}
	return b.String()
}

// restarted opens a Store as a gate does at a start, over a list of so many lines
// that was stored and has changed to so many since.
func restarted(t *testing.T, stored, current int) (*Store, *logBuffer) {
	t.Helper()
	path := write(t, inDir(t, "spam.txt"), numberedLines("old", stored))
	c := stateful(t, blockList("spam", path))
	c.Lists[0].MaxGrowth, c.Lists[0].MaxShrink = -1, 1
	first, err := Open(context.Background(), c)
	if err == nil {
		err = first.Close()
	}
	must(t, err)
	write(t, path, numberedLines("new", current))
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, long, long))
	log := &logBuffer{}
	c.Logger, c.StoredFirst = log.logger(), true
	return openStore(t, c), log
}

// A start leaves a long list unread, whatever made it one, until clients are served;
// and a short one is read before.
func TestStoredFirst(t *testing.T) {
	for _, tt := range []struct {
		stored, present int
		first           string // what serves first
	}{
		{longLines, longLines + 1, "old"},
		{longLines, 10, "old"},
		{10, longLines, "old"},
		{10, longLines - 1, "new"},
		{longLines - 1, 10, "new"},
	} {
		t.Run(fmt.Sprintf("%d lines, then %d", tt.stored, tt.present), func(t *testing.T) {
			s, log := restarted(t, tt.stored, tt.present)
			for range 2 {
				if a := listed(t, s.Set(), "x@"+tt.first+"0.example"); a != verdict.Reject {
					t.Errorf("%s is %v", tt.first, a)
				}
				if _, err := rescan(t, s); err != nil {
					t.Error(err)
				}
			}
			deferred := log.lines("stored index of a long list serves")
			if (tt.first == "old") != (len(deferred) == 1) {
				t.Errorf("the log says %q", deferred)
			}
			s.Listening()
			eventually(t, func() string {
				if a := listed(t, s.Set(), "x@new0.example"); a != verdict.Reject {
					return fmt.Sprint("once clients are served new is ", a)
				}
				return ""
			})
			if b, err := readBuilding(s.state.tree, "spam"); err != nil {
				t.Error(b, err)
			}
		})
	}
}

// What is noted of a list that is being read goes with the end of that: it went live,
// was held, could not be read, or the Store was closed meanwhile.
func TestBuildingIsRemoved(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), numberedLines("old", 2000))
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	marker := filepath.Join(ListDir(c.StateDir, "spam"), buildingName)
	gone := func(when string) {
		t.Helper()
		if _, err := os.Lstat(marker); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", when, err)
		}
	}
	gone("after the start")
	for when, text := range map[string]string{
		"went live": numberedLines("new", 2000), "shrunk": "one.example\n", "binary": "\x7fELF\x00\x00\x00\x00", "emptied": "",
	} {
		write(t, path, text)
		_, _ = rescan(t, s)
		gone(when)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	write(t, path, numberedLines("other", 2000))
	_ = s.Rescan(ctx)
	gone("given up")
	must(t, s.Close())
	gone("closed")
}
