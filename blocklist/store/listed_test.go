package store

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/disposable"
)

// The real list: every valid line is found with its line number.
func TestRealList(t *testing.T) {
	c, path := disposableConfig(t)
	set := build(t, c)
	s := set.Stats()
	if l := s.Lists[0]; l.Entries != disposable.Count-disposableInvalid || l.Invalid != disposableInvalid || len(l.Problems) != disposableInvalid {
		t.Errorf("%d entries, %d invalid, problems %v", l.Entries, l.Invalid, l.Problems)
	}
	invalid := map[int]bool{}
	for _, p := range s.Lists[0].Problems {
		invalid[p.Line] = true
	}
	line := 0
	for text := range strings.Lines(string(disposable.Text())) {
		line++
		if invalid[line] {
			continue
		}
		a, err := sender.Parse("someone@www." + strings.TrimSpace(text))
		if err != nil {
			t.Fatal(err)
		}
		m := lookup(t, set, verdict.Envelope, a).Match
		// Where a parent domain is listed too, or both forms of an IDN, it is
		// a line of the same list.
		if m.List != "disposable" || m.File != path || m.Line == 0 || m.Line > line && strings.TrimSpace(text) == m.Entry {
			t.Fatalf("line %d, %s: %+v", line, text, m)
		}
	}
	if line != disposable.Count {
		t.Errorf("%d lines", line)
	}
	if s.Bits != 1<<28 || s.Hashes != 11 || s.Family != "classic" || s.FillRatio < 0.003 || s.FillRatio > 0.005 ||
		s.FPR <= 0 || s.EstimatedEntries < 90_000 || s.Capacity < 16.8e6 || s.Warning != "" {
		t.Errorf("%+v", s)
	}
}

// OnHit is told of the entries that counted, and of exceptions among them; an
// entry may ask for less than its list.
func TestOnHit(t *testing.T) {
	dir := inDir(t, "")
	a := blockList("a", write(t, dir+"a", "example.com\n!friend@example.com\n"))
	b := blockList("b", write(t, dir+"b", "www.example.com REJECT no\nexample.com 450 later\n"))
	b.Format, b.Stages = listfile.PostfixAccess, verdict.Envelope
	c := fast(a, b)
	var hits []string
	names := map[uint64]string{}
	c.OnHit = func(list string, hash uint64) { hits = append(hits, list+" "+names[hash]) }
	set := build(t, c)
	_, key, _, ok := set.Index("a")
	if !ok {
		t.Fatal("no index")
	}
	for _, name := range []string{"example.com", "www.example.com", "friend@example.com"} {
		names[key.Hash([]byte(name))] = name
	}
	for _, c := range []struct {
		stage   verdict.Stage
		address string
		want    string
		action  verdict.Action
	}{
		{verdict.Envelope, "u@example.com", "a example.com, b example.com", verdict.Reject},
		{verdict.Envelope, "friend@example.com", "a friend@example.com, b example.com", verdict.Defer},
		{verdict.Envelope, "u@www.example.com", "b www.example.com, a example.com", verdict.Reject},
		{verdict.Header, "u@www.example.com", "a example.com", verdict.Reject},
		{verdict.Header, "friend@example.com", "a friend@example.com", verdict.Accept},
		{verdict.Envelope, "u@example.net", "", verdict.Accept},
	} {
		hits = nil
		d := lookup(t, set, c.stage, parse(t, c.address))
		if got := strings.Join(hits, ", "); got != c.want || d.Action != c.action {
			t.Errorf("%v %s: %v, %q; want %v, %q", c.stage, c.address, d.Action, got, c.action, c.want)
		}
	}
}

// The filter alone: its maybes decide.
func TestUnconfirmed(t *testing.T) {
	path := write(t, inDir(t, "list.txt"), "example.com # reason\n")
	c := fast(blockList("spam", path))
	c.FilterOnly = true
	set := build(t, c)
	want := verdict.Match{List: "spam", Entry: "example.com", Action: verdict.Reject, Unconfirmed: true, Rank: 4}
	if d := lookup(t, set, verdict.Envelope, parse(t, "u@www.example.com")); d.Match != want {
		t.Errorf("got %+v, want %+v", d.Match, want)
	}
	if d := lookup(t, set, verdict.Envelope, parse(t, "u@example.org")); d.Action != verdict.Accept {
		t.Errorf("%+v", d)
	}
	if n := set.FalsePositives(); n != 0 {
		t.Errorf("%d false positives counted, which nobody can know", n)
	}
	write(t, path, "example.com\n!www.example.com\n")
	if _, _, err := Build(context.Background(), c); err == nil || !strings.Contains(err.Error(), "confirm") {
		t.Errorf("an exception: %v", err)
	}
}

// What a match says of its entry.
func TestMatch(t *testing.T) {
	dir := inDir(t, "")
	first := write(t, filepath.Join(dir, "a.txt"), "# none\n\nexample.net\n")
	second := write(t, filepath.Join(dir, "b.txt"),
		"example.com  # sold our address ## ticket 7\nexample.com # again\nexample.org ## just a note\n")
	l := blockList("spam", filepath.Join(dir, "*.txt"))
	l.PublicReason = true
	set := build(t, fast(l))
	cases := []struct {
		sender string
		want   verdict.Match
	}{
		{"u@mail.example.com", verdict.Match{File: second, Line: 1, Entry: "example.com", Reason: "sold our address", Note: "ticket 7", Rank: 4}},
		{"u@example.org", verdict.Match{File: second, Line: 3, Entry: "example.org", Note: "just a note", Rank: 2}},
		{"u@example.net", verdict.Match{File: first, Line: 3, Entry: "example.net", Rank: 2}},
	}
	for _, c := range cases {
		c.want.List, c.want.Action, c.want.PublicReason = "spam", verdict.Reject, true
		if d := lookup(t, set, verdict.Header, parse(t, c.sender)); d.Match != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.sender, d.Match, c.want)
		}
	}
	if s := set.Stats().Lists[0]; s.Entries != 4 || s.Duplicates != 1 || s.Exceptions != 0 || len(s.Files) != 2 {
		t.Errorf("%+v", s)
	}
}

// The filter alone, with its one list and without.
func TestViewUnconfirmed(t *testing.T) {
	c := fast(blockList("spam", write(t, inDir(t, "list.txt"), "example.com\n<>\n")))
	c.FilterOnly = true
	set := build(t, c)
	for _, address := range []string{"u@example.com", "<>"} {
		if d := lookup(t, set.Only([]string{"spam"}), verdict.Envelope, parse(t, address)); d.Action != verdict.Reject {
			t.Errorf("%s: %+v", address, d)
		}
		if d := lookup(t, set.Only([]string{"other"}), verdict.Envelope, parse(t, address)); d.Action != verdict.Accept {
			t.Errorf("%s: %+v", address, d)
		}
	}
}

// The Set that comes next has Views of its own, with the new lists.
func TestViewFollows(t *testing.T) {
	dir := inDir(t, "")
	path := write(t, filepath.Join(dir, "a"), "example.com\n")
	other := write(t, filepath.Join(dir, "b"), "example.org\n")
	store := openStill(t, fast(blockList("a", path), blockList("b", other)))
	names := []string{"a"}
	before := store.Set().Only(names)
	write(t, path, "example.net\n")
	if _, err := rescan(t, store); err != nil {
		t.Fatal(err)
	}
	a := parse(t, "u@example.net")
	if d := lookup(t, before, verdict.Envelope, a); d.Action != verdict.Accept {
		t.Errorf("before: %+v", d)
	}
	if d := lookup(t, store.Set().Only(names), verdict.Envelope, a); d.Action != verdict.Reject {
		t.Errorf("after: %+v", d)
	}
}

func TestViewAllocations(t *testing.T) {
	c, path := disposableConfig(t)
	c.Lists = append(c.Lists, blockList("other", write(t, inDir(t, "other.txt"), "example.com\n")), blockList("again", path))
	set := build(t, c)
	names := []string{"again", "other"}
	for _, address := range []string{"someone@example.net", "<>"} {
		a := parse(t, address)
		if n := testing.AllocsPerRun(100, func() { set.Only(names).Lookup(verdict.Envelope, a) }); n != 0 {
			t.Errorf("%s: %v allocations", address, n)
		}
	}
	// A miss, although the filter and another list know the key.
	a := parse(t, "someone@0-180.com")
	if n := testing.AllocsPerRun(100, func() { set.Only(names[1:]).Lookup(verdict.Envelope, a) }); n != 0 {
		t.Errorf("listed elsewhere: %v allocations", n)
	}
}

// Each bad configuration and what the error says of it.
func TestValidate(t *testing.T) {
	list := func(change func(l *List)) Config {
		l := blockList("a", "/a")
		change(&l)
		return Config{Lists: []List{l}}
	}
	allow := allowList("b", "/b")
	cases := []struct {
		name string
		c    Config
		want string // "" for a good one
	}{
		{"nothing", Config{}, ""},
		{"one list", list(func(*List) {}), ""},
		{"header action", list(func(l *List) { l.HeaderAction = verdict.Monitor }), ""},
		{"subset family", Config{Filter: blocklist.Filter{Family: "classic:RS,AP"}}, ""},
		{"unconfirmed", Config{FilterOnly: true, Lists: []List{blockList("a", "/a")}}, ""},
		{"no name", list(func(l *List) { l.Name = "" }), `list "": the name must not be empty`},
		{"control in the name", list(func(l *List) { l.Name = "a\nb" }), `list "a\nb": the name must not`},
		{"space after the name", list(func(l *List) { l.Name = "a " }), `the name must not`},
		{"invalid UTF-8 in the name", list(func(l *List) { l.Name = "\xff" }), `the name must not`},
		{"name twice", Config{Lists: []List{blockList("a", "/a"), blockList("a", "/b")}}, `list "a" is configured twice`},
		{"no path", list(func(l *List) { l.Paths = nil }), `list "a": no path`},
		{"relative path", list(func(l *List) { l.Paths = []string{"a.txt"} }), `path "a.txt" is not absolute`},
		{"bad glob", list(func(l *List) { l.Paths = []string{"/a["} }), `path "/a[" is not a valid glob`},
		{"block accepts", list(func(l *List) { l.Action = verdict.Accept }), `action accept is not for a block list: use reject, defer, discard, tag or monitor`},
		{"unknown action", list(func(l *List) { l.Action = 9 }), `action Action(9)`},
		{"unknown header action", list(func(l *List) { l.HeaderAction = 9 }), `header action Action(9)`},
		{"block overrides", list(func(l *List) { l.Override = true }), `override is for allow lists`},
		{"allow rejects", list(func(l *List) { l.Type = blocklist.Allow }), `an allow list has no action`},
		{"unknown type", list(func(l *List) { l.Type = 7 }), `unknown type ListType(7): use block or allow`},
		{"unknown stage", list(func(l *List) { l.Stages = 8 }), `unknown stage 8`},
		{"family", Config{Filter: blocklist.Filter{Family: "quantum"}}, `"quantum"`},
		{"negative poll", Config{PollInterval: -1}, `use positive times`},
		{"debounce", Config{Debounce: 2, MaxDebounce: 1}, `use positive times`},
		{"unconfirmed, no list", Config{FilterOnly: true}, `confirm = false`},
		{"unconfirmed, two lists", Config{FilterOnly: true, Lists: []List{blockList("a", "/a"), blockList("b", "/b")}}, `confirm = false`},
		{"unconfirmed, allow", Config{FilterOnly: true, Lists: []List{allow}}, `confirm = false`},
	}
	for _, c := range cases {
		err := c.c.Validate()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	// All that is wrong is said at once.
	both := list(func(l *List) { l.Paths, l.Name = nil, "" })
	if err := both.Validate(); !strings.Contains(err.Error(), "name") || !strings.Contains(err.Error(), "path") {
		t.Error(err)
	}
}
