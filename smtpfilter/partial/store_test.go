package partial

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSettle wants outcomes to be known at once, by later Stores too, until the final
// reply.
func TestSettle(t *testing.T) {
	path := storePath(t)
	s := open(t, path, Options{})
	sum, two := sumOf(1), sumOf(2)
	settle(t, s, sum, "b delivered", "c pending", "d refused 552-full")
	settle(t, s, two, "b pending", "c delivered", "c refused 550-twice-named", "e refused x", "e delivered")
	for range 2 {
		want(t, s, "b", has(sum), pending(two))
		want(t, s, "c", pending(sum), has(two))
		want(t, s, "d", refused(sum))
		want(t, s, "e", has(two))
		want(t, s, "B")
		want(t, s, "x")
		if known := s.Recall("other@example.com", "b"); known != nil {
			t.Errorf("another sender: %v", known)
		}
		if !s.Knows(sum) || s.Knows(sumOf(3)) {
			t.Error("Knows is wrong")
		}
		s.Close()
		s = open(t, path, Options{})
	}
	settle(t, s, sum, "b settled", "c refused x", "never-heard-of settled")
	for range 2 {
		want(t, s, "b", pending(two))
		want(t, s, "c", refused(sum), has(two))
		s.Close()
		s = open(t, path, Options{})
	}
	settle(t, s, sum, "c settled", "d settled")
	settle(t, s, two, "b settled", "c settled", "e settled")
	if s.Len() != 0 || s.Knows(sum) {
		t.Errorf("%d entries are left", s.Len())
	}
	if text := readFile(t, path); strings.Contains(text, "example") {
		t.Errorf("an address is in the file: %s", text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestAge wants entries to end after a time that begins with the first outcome, also while
// the Store runs.
func TestAge(t *testing.T) {
	path, c := storePath(t), newClock()
	s := open(t, path, Options{now: c.now})
	m := sumOf(1)
	settle(t, s, m, "b delivered", "c pending")
	c.instant = c.instant.Add(6 * 24 * time.Hour)
	settle(t, s, m, "c refused x")
	want(t, s, "b", has(m))
	c.instant = c.instant.Add(25 * time.Hour)
	want(t, s, "b")
	want(t, s, "c")
	want(t, open(t, path, Options{now: c.now}), "b")

	// A clock that was ahead does not keep an entry for ever.
	settle(t, s, m, "b delivered")
	c.instant = c.instant.Add(-365 * 24 * time.Hour)
	s = open(t, path, Options{now: c.now})
	want(t, s, "b", has(m))
	c.instant = c.instant.Add(8 * 24 * time.Hour)
	want(t, s, "b")
}

// TestFlood wants a flood of partial failures to stay within the limit, in memory and on
// disk, and the oldest entries to be dropped first.
func TestFlood(t *testing.T) {
	path := storePath(t)
	var log bytes.Buffer
	s := open(t, path, Options{MaxEntries: 100, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 700 {
		settle(t, s, sumOf(i), fmt.Sprintf("r%d delivered", i), fmt.Sprintf("s%d refused full", i))
	}
	if s.Len() != 100 {
		t.Errorf("%d entries", s.Len())
	}
	for _, store := range []*Store{s, open(t, path, Options{MaxEntries: 100})} {
		want(t, store, "r649")
		want(t, store, "r650", has(sumOf(650)))
		want(t, store, "s699", refused(sumOf(699)))
	}
	if n := strings.Count(readFile(t, path), "\n"); n > 2*100+slack {
		t.Errorf("the file has %d lines", n)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one a minute:\n%s", n, log.String())
	}

	// One sender and recipient do not take all the room.
	for i := range 50 {
		settle(t, s, sumOf(i), "b delivered")
	}
	if known := s.Recall("a@example.com", "b"); len(known) != maxPerPair || known[0] != has(sumOf(50-maxPerPair)) {
		t.Errorf("%d entries of one recipient", len(known))
	}
}

// TestTurn wants the group with the fewest turns to go first, whichever recipient the
// client names first, and nobody to wait twice in a row.
func TestTurn(t *testing.T) {
	s := open(t, storePath(t), Options{})
	m := sumOf(1)
	turn := func(to string, want bool) {
		t.Helper()
		if s.Turn("a@example.com", to) != want {
			t.Errorf("%s: its turn is %t, want %t", to, !want, want)
		}
	}
	settle(t, s, m, "h delivered", "p pending", "r refused x")
	turn("r", false)
	turn("p", false)
	turn("h", true)
	settle(t, s, m, "h settled")

	// p has waited once. It fails again and again, and does not keep r from its turn.
	turn("p", true)
	settle(t, s, m, "p pending")
	turn("p", false)
	turn("r", true)
	turn("p", true)
	settle(t, s, m, "r settled")
	turn("p", true)
	turn("unknown", true)

	// A client that comes with other mail for one recipient alone waits once, and not
	// again before it comes with this message.
	settle(t, s, m, "h delivered", "p pending")
	for range 2 {
		turn("p", false)
		for range 3 {
			turn("p", true)
		}
		settle(t, s, sumOf(2), "p delivered")
		turn("p", true)
		settle(t, s, m, "p pending")
	}
}

// TestGroup wants recipients to share a transaction unless their states differ for a
// message that they all have in common.
func TestGroup(t *testing.T) {
	sum, two := sumOf(1), sumOf(2)
	words := func(m Sum, words uint64) Entry { return Entry{Message: m, State: Refused, Words: words} }
	for name, c := range map[string]struct {
		recipients [][]Entry
		want       string // who can go along
		mayHave    bool
	}{
		"nobody known":           {[][]Entry{nil, nil}, "yy", false},
		"all have it":            {[][]Entry{{has(sum)}, {has(sum)}}, "yy", true},
		"has and pending":        {[][]Entry{{has(sum)}, {pending(sum)}, {has(sum)}}, "yny", true},
		"same words":             {[][]Entry{{words(sum, 1)}, {words(sum, 1)}, {words(sum, 2)}}, "yyn", false},
		"unknown after known":    {[][]Entry{{has(sum)}, nil, {pending(sum)}}, "yyy", false},
		"known after unknown":    {[][]Entry{nil, {has(sum)}, {pending(sum)}}, "yyy", false},
		"different messages":     {[][]Entry{{has(sum)}, {has(two)}, {pending(sum)}}, "yyy", false},
		"one of two in common":   {[][]Entry{{has(sum), has(two)}, {has(two)}, {has(sum)}}, "yyy", false},
		"two, one is different":  {[][]Entry{{has(sum), has(two)}, {has(two), pending(sum)}}, "yn", true},
		"refused, then has both": {[][]Entry{{words(sum, 1)}, {has(sum), has(two)}}, "yn", false},
	} {
		t.Run(name, func(t *testing.T) {
			var g Group
			got := ""
			for _, entries := range c.recipients {
				if with := g; with.Add(entries) {
					g, got = with, got+"y"
				} else {
					got += "n"
				}
			}
			if got != c.want || g.MayHave() != c.mayHave {
				t.Errorf("%s, may have it %t; want %s, %t", got, g.MayHave(), c.want, c.mayHave)
			}
		})
	}
}
