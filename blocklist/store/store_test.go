package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

func TestOpen(t *testing.T) {
	dir := inDir(t, "")
	spam := write(t, filepath.Join(dir, "spam.txt"), "example.com\nno entry\n!ok.example.com\nexample.com\n")
	var log logBuffer
	c := fast(blockList("spam", spam), allowList("friends", write(t, filepath.Join(dir, "friends.txt"), "# nobody\n")))
	c.Logger = log.logger()
	s := openStore(t, c)
	set := s.Set()
	if set.Generation() != 1 || listed(t, set, "u@example.com") != verdict.Reject {
		t.Errorf("generation %d", set.Generation())
	}
	stats := set.Stats()
	l := stats.Lists[0]
	if l.Name != "spam" || l.Type != blocklist.Block || l.Action != verdict.Reject || l.Stages != verdict.Envelope|verdict.Header ||
		l.Entries != 3 || l.Exceptions != 1 || l.Duplicates != 1 || l.Invalid != 1 || l.Bytes == 0 || l.Loaded.IsZero() ||
		len(l.Files) != 1 || l.Files[0].Path != spam || l.Files[0].Entries != 3 || l.Files[0].Invalid != 1 || l.Files[0].Size != 49 ||
		len(l.Problems) != 1 || l.Problems[0].File != spam || l.Problems[0].Line != 2 {
		t.Errorf("%+v", l)
	}
	if stats.Generation != 1 || stats.Entries != 3 || stats.Invalid != 1 || stats.Lists[1].Type != blocklist.Allow {
		t.Errorf("%+v", stats)
	}
	for _, want := range []string{
		`level=DEBUG msg="lists live" generation=1 list=spam,friends entries_before=0 entries=3 invalid=1`,
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

// What is known is not said again with each change of a list.
func TestKnownProblemsAreNotLoggedAgain(t *testing.T) {
	var log logBuffer
	path := write(t, inDir(t, "spam.txt"), "example.com\nno entry\n")
	c := fast(blockList("spam", path))
	c.Logger = log.logger()
	s := openStore(t, c)
	for _, step := range []struct {
		text string
		want int // lines so far
	}{
		{"example.net\nexample.com\nno entry\n", 1},
		{"example.com\nno other entry\n", 2},
		{"example.com\nno other entry\nco.uk\n", 4},
		{"example.com\n", 4},
	} {
		write(t, path, step.text)
		must(t, s.Rescan(context.Background()))
		if got := len(log.lines("invalid line skipped")); got != step.want {
			t.Errorf("%q: %d lines, want %d", step.text, got, step.want)
		}
	}
}

func TestReload(t *testing.T) {
	dir := inDir(t, "")
	a := write(t, filepath.Join(dir, "a.txt"), "example.com\n")
	b := write(t, filepath.Join(dir, "b.txt"), "example.net\n")
	s := openStore(t, fast(blockList("a", a)))
	before, version := s.Set(), versionAt(s, 0)
	ctx := context.Background()

	// The same list with another action and name is not read again.
	l := blockList("renamed", a)
	l.Action = verdict.Tag
	must(t, s.Reload(ctx, fast(l)))
	set := s.Set()
	if set.Generation() != 2 || listed(t, set, "u@example.com") != verdict.Tag {
		t.Errorf("generation %d", set.Generation())
	}
	if versionAt(s, 0) != version || !set.SharesFilter(before) {
		t.Error("read again")
	}

	// Another option, and it is.
	l.Exact = true
	must(t, s.Reload(ctx, fast(l, blockList("b", b))))
	set = s.Set()
	if listed(t, set, "u@www.example.com") != verdict.Accept || listed(t, set, "u@example.net") != verdict.Reject {
		t.Error("the new options do not count")
	}

	// Errors change nothing.
	missing := blockList("missing", filepath.Join(dir, "missing.txt"))
	for _, c := range []Config{fast(l, missing), fast(List{}), {Filter: blocklist.Filter{Family: "none"}}} {
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
	if st := s.Set().Stats().Lists[0]; !st.LastGood || listed(t, s.Set(), "u@example.net") != verdict.Reject {
		t.Errorf("%+v", st)
	}

	// The new list is watched, the new times count.
	next := s.Set().Generation() + 1
	write(t, b, "example.org\n")
	if set := await(t, s, next); listed(t, set, "u@example.org") != verdict.Reject {
		t.Error("not listed")
	}
	c := fast(blockList("b", b))
	c.Filter.Family = "classic:RS,JS"
	must(t, s.Reload(ctx, c))
	if st := s.Set().Stats(); st.Family != c.Filter.Family || st.Hashes != 2 {
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
	old.Lookup(verdict.Envelope, parse(t, "u@example.com"))
	write(t, path, "example.net\n")
	set, err := rescan(t, s)
	must(t, err)
	lookup(t, set, verdict.Envelope, parse(t, "u@example.com"))
	if set == old || set.Lookups() != 2 || old.Lookups() != 2 || set.Maybes() != 1 {
		t.Errorf("%d lookups, %d maybes", set.Lookups(), set.Maybes())
	}
}

// A reload that reads a list in another way compares with what the list served,
// and changes nothing where that looks wrong.
func TestReloadKeepsTheGuards(t *testing.T) {
	for _, optional := range []bool{false, true} {
		path := write(t, inDir(t, "spam.txt"), "example.com\n")
		l := blockList("spam", path)
		l.Optional = optional
		s := openStore(t, fast(l))
		write(t, path, "")
		l.Exact = true
		if err := s.Reload(context.Background(), fast(l)); !errors.Is(err, ErrEmptied) {
			t.Errorf("optional %v: %v, want %v", optional, err, ErrEmptied)
		}
		if got := listed(t, s.Set(), "u@example.com"); got != verdict.Reject {
			t.Errorf("optional %v: %v", optional, got)
		}
	}
}

// What was planned by a look that went no further is planned again: the directory
// may have been replaced, and its watch be gone.
func TestPlansAreForgotten(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	s := openStore(t, fast(blockList("spam", path)))
	ctx := context.Background()
	s.stage(ctx)
	missing := blockList("other", filepath.Join(filepath.Dir(path), "missing.txt"))
	if err := s.Reload(ctx, fast(blockList("spam", path), missing)); err == nil {
		t.Error("a list without a file is loaded")
	}
	dir := filepath.Dir(path)
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Mkdir(dir, 0o755))
	write(t, path, "example.org\n")
	set, err := rescan(t, s)
	must(t, err)
	if listed(t, set, "u@example.org") != verdict.Reject {
		t.Error("the new directory is not read")
	}
	replace(t, path, "example.net\n")
	if set := await(t, s, set.Generation()+1); listed(t, set, "u@example.net") != verdict.Reject {
		t.Error("the new directory is not watched")
	}
}

// A huge file that is no list is noticed at its beginning.
func TestBinaryIsNoticedEarly(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	must(t, os.Truncate(path, 1<<40)) // a hole: reading it would take an hour
	l := blockList("spam", path)
	l.MaxBytes = 1 << 41
	if _, _, err := Build(context.Background(), fast(l)); !errors.Is(err, listfile.ErrBinary) {
		t.Errorf("%v, want %v", err, listfile.ErrBinary)
	}
}
