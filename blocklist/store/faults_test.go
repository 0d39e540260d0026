package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// faults are the ways in which what is on disk can be no list. Make puts the
// fault where the list was.
var faults = []struct {
	name string
	err  error
	make func(tb testing.TB, path string)
}{
	{"missing", fs.ErrNotExist, func(tb testing.TB, path string) {}},
	{"directory", ErrNotRegular, func(tb testing.TB, path string) { must(tb, os.Mkdir(path, 0o755)) }},
	{"pipe", ErrNotRegular, func(tb testing.TB, path string) { must(tb, syscall.Mkfifo(path, 0o644)) }},
	{"socket", ErrNotRegular, func(tb testing.TB, path string) {
		// The address of a socket has some 100 bytes at most, and the path may be longer.
		tb.Chdir(filepath.Dir(path))
		l, err := net.Listen("unix", filepath.Base(path))
		must(tb, err)
		tb.Cleanup(func() { l.Close() })
	}},
	{"device", ErrNotRegular, func(tb testing.TB, path string) { must(tb, os.Symlink("/dev/zero", path)) }},
	{"dangling link", fs.ErrNotExist, func(tb testing.TB, path string) { must(tb, os.Symlink("nowhere", path)) }},
	{"link loop", syscall.ELOOP, func(tb testing.TB, path string) { must(tb, os.Symlink(filepath.Base(path), path)) }},
	{"below a file", syscall.ENOTDIR, func(tb testing.TB, path string) {
		must(tb, os.Symlink(filepath.Base(write(tb, path+".file", ""))+"/list.txt", path))
	}},
	{"unreadable", fs.ErrPermission, func(tb testing.TB, path string) {
		write(tb, path, "example.net\n")
		must(tb, os.Chmod(path, 0))
	}},
	{"unreadable directory", fs.ErrPermission, func(tb testing.TB, path string) {
		must(tb, os.Mkdir(path+".dir", 0o755))
		write(tb, path+".dir/list.txt", "example.net\n")
		must(tb, os.Symlink(filepath.Base(path)+".dir/list.txt", path))
		must(tb, os.Chmod(path+".dir", 0))
		tb.Cleanup(func() { os.Chmod(path+".dir", 0o755) }) // or who is not root cannot remove it
	}},
	{"binary", listfile.ErrBinary, func(tb testing.TB, path string) { write(tb, path, "example.net\n\x00\x01\n") }},
	{"UTF-16", listfile.ErrUTF16, func(tb testing.TB, path string) { write(tb, path, "\xff\xfee\x00x\x00a\x00") }},
	{"invalid lines", ErrInvalidLines, func(tb testing.TB, path string) { write(tb, path, manyLines(1000, 11)) }},
	{"sparse", listfile.ErrBinary, func(tb testing.TB, path string) {
		write(tb, path, "example.net\n")
		must(tb, os.Truncate(path, 64<<20))
	}},
}

// manyLines is a list with so many lines, of which some are invalid.
func manyLines(lines, invalid int) string {
	var b strings.Builder
	for i := range lines {
		if i < invalid {
			b.WriteString("no entry\n")
		} else {
			fmt.Fprintf(&b, "host%d.example\n", i)
		}
	}
	return b.String()
}

func rescanAsStranger(t *testing.T, s *Store) (set *blocklist.Set, err error) {
	t.Helper()
	asStranger(t, func() { set, err = rescan(t, s) })
	return set, err
}

func put(tb testing.TB, path string, fault func(tb testing.TB, path string)) {
	tb.Helper()
	must(tb, os.RemoveAll(path))
	fault(tb, path)
}

// A list that fails keeps its last good version, and says so; a change beside it
// goes live; once repaired the list goes on.
func TestFaultsWhileRunning(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), "example.com\n")
			beside := write(t, inDir(t, "beside.txt"), "example.org\n")
			var log logBuffer
			c := fast(blockList("spam", path), blockList("beside", beside))
			c.Logger = log.logger()
			s := openStill(t, c)

			put(t, path, fault.make)
			write(t, beside, "example.info\n")
			for range 2 { // it is logged once
				set, err := rescanAsStranger(t, s)
				if !errors.Is(err, fault.err) || !strings.Contains(err.Error(), `list "spam": `) || !strings.Contains(err.Error(), path) {
					t.Errorf("error %v, want %v", err, fault.err)
				}
				l := set.Stats().Lists[0]
				if set.Generation() != 2 || l.Err == nil || !l.LastGood || l.Entries != 1 || l.Loaded.IsZero() {
					t.Errorf("generation %d, %+v", set.Generation(), l)
				}
				if listed(t, set, "u@example.com") != verdict.Reject || listed(t, set, "u@example.info") != verdict.Reject || listed(t, set, "u@example.org") != verdict.Accept {
					t.Error("want the old version of the bad list and the new one of the other")
				}
			}
			if lines := log.lines("list held"); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") {
				t.Errorf("log: %q", lines)
			}

			put(t, path, func(tb testing.TB, path string) { write(tb, path, "example.net\n") })
			set, err := rescanAsStranger(t, s)
			if l := set.Stats().Lists[0]; err != nil || l.Err != nil || l.LastGood || set.Generation() != 3 {
				t.Errorf("repaired: %v, %+v", err, l)
			}
			if listed(t, set, "u@example.com") != verdict.Accept || listed(t, set, "u@example.net") != verdict.Reject {
				t.Error("repaired, but the old version serves")
			}
			if lines := log.lines("good again"); len(lines) != 1 {
				t.Errorf("log: %q", lines)
			}
			if t.Failed() {
				t.Log(log.text.String())
			}
		})
	}
}

// At the start it stops, or leaves an optional list empty until there is one.
func TestFaultsAtStart(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			path := inDir(t, "spam.txt")
			put(t, path, fault.make)
			c := fast(blockList("spam", path))
			asStranger(t, func() {
				set, stats, err := Build(context.Background(), c)
				if set != nil || !errors.Is(err, fault.err) || !strings.Contains(err.Error(), `"spam"`) || !strings.Contains(err.Error(), path) {
					t.Errorf("set %v, error %v; want %v", set, err, fault.err)
				}
				if len(stats) != 1 || stats[0].Err == nil || stats[0].LastGood {
					t.Errorf("%+v", stats)
				}
			})
			c.Lists[0].Optional = true
			var s *Store
			asStranger(t, func() { s = openStill(t, c) })
			if l := s.Set().Stats().Lists[0]; l.Err == nil || l.LastGood || l.Entries != 0 {
				t.Errorf("%+v", l)
			}
			if listed(t, s.Set(), "u@example.com") != verdict.Accept {
				t.Error("listed in an empty list")
			}
			put(t, path, func(tb testing.TB, path string) { write(tb, path, "example.com\n") })
			if set, err := rescanAsStranger(t, s); err != nil || listed(t, set, "u@example.com") != verdict.Reject {
				t.Errorf("the list came, and does not serve: %v", err)
			}
		})
	}
}

// What looks wrong only for what was there before.
func TestGuards(t *testing.T) {
	cases := []struct {
		name, before, after string
		err                 error
	}{
		{"emptied", "example.com\n", "", ErrEmptied},
		{"a comment is empty on purpose", "example.com\n", "# nothing yet\n", nil},
		{"a line is too", "example.com\n", "\n", nil},
		{"always empty", "", "", nil},
		{"empty after comments", "# nothing\n", "", nil},
		{"a small list with invalid lines", "example.com\n", manyLines(999, 500), nil},
		{"1% of 1,000", "example.com\n", manyLines(1000, 10), nil},
		{"more than 1% of 1,000", "example.com\n", manyLines(1000, 11), ErrInvalidLines},
		{"an error page for a long list", manyLines(1000, 0), "<html>\n<p>404 not found\n", listfile.ErrNotList},
		{"an error page for a short list", manyLines(999, 0), "<html>\n<p>404 not found\n", listfile.ErrNotList},
		{"shortened", manyLines(1000, 0), "example.com\n", ErrShrunk},
		{"shortened by 20%", manyLines(1000, 0), manyLines(800, 0), nil},
		{"shortened by more than 20%", manyLines(1000, 0), manyLines(799, 0), ErrShrunk},
		{"a short list shortened", manyLines(999, 0), "example.com\n", nil},
		{"ten times as long", manyLines(1000, 0), manyLines(10_000, 0), nil},
		{"longer than that", manyLines(1000, 0), manyLines(10_001, 0), ErrGrown},
		{"a short list longer than that", manyLines(999, 0), manyLines(10_001, 0), ErrGrown},
		{"a short list as long", manyLines(1, 0), manyLines(10_000, 0), nil},
		{"the first entries", "# nothing yet\n", manyLines(10_001, 0), nil},
		{"repeated entries", manyLines(2000, 0), strings.Repeat("example.com\n", 2000), ErrShrunk},
		{"exceptions for all", manyLines(1000, 0), manyLines(1000, 0) + "!" + strings.TrimSuffix(strings.ReplaceAll(manyLines(1000, 0), "\n", "\n!"), "!"), ErrExceptions},
		{"as many exceptions for others", manyLines(1000, 0), manyLines(1000, 0) + strings.ReplaceAll(manyLines(1000, 0), "host", "!www.host"), ErrExceptions},
		{"some exceptions", manyLines(1000, 0), manyLines(1000, 0) + strings.ReplaceAll(manyLines(200, 0), "host", "!www.host"), nil},
		{"a comment for a long list", manyLines(1000, 0), "# nothing yet\n", ErrShrunk},
		{"a long line in a long list", manyLines(1000, 0), manyLines(1000, 0) + strings.Repeat("x", 5000) + "\n", ErrLongLine},
		{"a long line in a short list", manyLines(10, 0), manyLines(10, 0) + strings.Repeat("x", 5000) + "\n", nil},
		{"a long line for a long list", manyLines(1000, 0), strings.Repeat("example.com ", 5000), ErrInvalidLines},
	}
	for _, c := range cases {
		path := write(t, inDir(t, "spam.txt"), c.before)
		s := openStill(t, fast(blockList("spam", path)))
		before := s.Set().Stats().Entries
		write(t, path, c.after)
		set, err := rescan(t, s)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
		if held := set.Stats().Lists[0].LastGood; held != (c.err != nil) || held && set.Stats().Entries != before {
			t.Errorf("%s: held is %v, with %d entries", c.name, held, set.Stats().Entries)
		}
	}
}

// At the start there is nothing to compare with: a file of 0 bytes is an empty
// list, and only the share of invalid lines tells a wrong one.
func TestGuardsAtStart(t *testing.T) {
	for text, want := range map[string]error{
		"":                   nil,
		manyLines(1000, 10):  nil,
		manyLines(1000, 11):  ErrInvalidLines,
		manyLines(1000, 600): ErrInvalidLines,
		manyLines(999, 999):  nil,
	} {
		_, _, err := Build(context.Background(), fast(blockList("spam", write(t, inDir(t, "spam.txt"), text))))
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%.20q…: %v, want %v", text, err, want)
		}
	}
}

// One of several files fails: the whole list keeps its last good version.
func TestFaultInOneFile(t *testing.T) {
	dir := inDir(t, "")
	a := write(t, filepath.Join(dir, "a.txt"), "example.com\n")
	b := write(t, filepath.Join(dir, "b.txt"), "example.net\n")
	s := openStill(t, fast(blockList("spam", dir+"/*.txt")))
	write(t, a, "example.org\n")
	write(t, b, "\x00")
	set, err := rescan(t, s)
	if !errors.Is(err, listfile.ErrBinary) || !strings.Contains(err.Error(), b) {
		t.Error(err)
	}
	if listed(t, set, "u@example.com") != verdict.Reject || listed(t, set, "u@example.org") != verdict.Accept {
		t.Error("half of a list went live")
	}
}

// meddler is a context that does something each time it is asked whether it has
// ended, as readers of files do.
type meddler struct {
	context.Context
	meddle func()
}

func (m meddler) Err() error {
	m.meddle()
	return nil
}

// A file that changes whenever it is read is waited for, and is an error in the
// end; last good serves.
func TestFaultAlwaysChanging(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	l := blockList("spam", path)
	src := newSource(&l)
	watch := func(dir, name string) {}
	first, _ := src.scan(context.Background(), watch, nil, debounce{})
	must(t, first.err)
	src.live = first

	reads := 0
	ctx := meddler{context.Background(), func() {
		reads++
		write(t, path, "example.net\n"+strings.Repeat("#", reads))
	}}
	write(t, path, "example.net\n")
	p := debounce{quiet: 1, atMost: time.Hour}
	for old := false; !old; runtime.Gosched() { // to be looked into at all
		stamps, err := anyFile.statFiles([]string{path})
		must(t, err)
		old = src.unsettled(stamps, nil, p) <= 0
	}
	if r, again := src.scan(ctx, watch, nil, p); again.IsZero() || r.err != nil || r.good != first.good {
		t.Errorf("not waited for: %+v", r)
	}
	if reads < readAttempts {
		t.Errorf("given up after %d reads", reads)
	}
	src.writing = time.Now().Add(-2 * p.atMost)
	if r, again := src.scan(ctx, watch, nil, p); !again.IsZero() || !errors.Is(r.err, ErrChanged) || r.good != first.good {
		t.Errorf("waited too long, and got %+v", r)
	}
	if r, _ := src.scan(context.Background(), watch, nil, debounce{}); r.err != nil || r.good == first.good {
		t.Errorf("left alone at last, and got %+v", r)
	}
}
