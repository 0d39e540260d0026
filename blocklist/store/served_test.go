package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hosts is a list of entries that begin with a word.
func hosts(word string, n int) string { return strings.ReplaceAll(manyLines(n, 0), "host", word) }

// An update that adds wrong entries goes live, and so does the repair, the very content of before
// or another, also after a restart and without a state directory.
func TestRepairIsNotHeld(t *testing.T) {
	for _, stored := range []bool{true, false} {
		path := write(t, inDir(t, "spam.txt"), hosts("host", 3000))
		l := blockList("spam", path)
		l.URL = "https://lists.example/"
		c := stateful(t, l)
		if !stored {
			c.StateDir = ""
		}
		s := openStill(t, c)
		wrong := hosts("host", 3000) + hosts("wrong", 800)
		for _, repair := range []string{hosts("host", 3000), hosts("host", 2990) + hosts("new", 20), hosts("host", 2500)} {
			write(t, path, wrong)
			if set, err := rescan(t, s); err != nil || set.Stats().Entries != 3800 {
				t.Fatalf("%d entries, %v", set.Stats().Entries, err)
			}
			if stored {
				must(t, s.Close())
				s = openStill(t, c)
			}
			write(t, path, repair)
			if set, err := rescan(t, s); err != nil || set.Stats().Entries != strings.Count(repair, "\n") {
				t.Errorf("stored %t: %d entries, %v", stored, set.Stats().Entries, err)
			}
		}
		write(t, path, hosts("host", 1500))
		if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) || !strings.Contains(err.Error(), "from 2500 entries to 1500") {
			t.Error(err)
		}
	}
}

// A content that is in the history is let in whatever its size, even if nothing else is
// known of earlier versions.
func TestContentOfHistoryIsNotHeld(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), hosts("host", 1000))
	c := stateful(t, blockList("spam", path))
	c.History = 5
	s := openStill(t, c)
	s.running.Wait() // for what keeps the version
	for _, n := range []int{9000, 80_000} {
		write(t, path, hosts("host", n))
		_, err := rescan(t, s)
		must(t, err)
		s.running.Wait()
	}
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(ListDir(c.StateDir, "spam"), servedName)))
	s = openStill(t, c)
	write(t, path, hosts("host", 1001))
	if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
		t.Error(err)
	}
	write(t, path, hosts("host", 1000))
	if set, err := rescan(t, s); err != nil || set.Stats().Entries != 1000 {
		t.Errorf("%d entries, %v", set.Stats().Entries, err)
	}
}

// What a stolen feed may do to a list: each is held, the reason says what was compared, and a
// restart does not forget it. Accepting lets it in.
func TestGuardsOfFetched(t *testing.T) {
	soon := until(time.Now().Add(time.Hour))
	cases := []struct {
		name, before, after string
		want                error
		says                string
	}{
		{
			"an exception for each", hosts("host", 3000), hosts("host", 3000) + hosts("!host", 3000),
			ErrExceptions, "from 0 to 3000 in a list of 3000 entries, and max_shrink is 20%",
		},
		{
			"entries for an hour", hosts("host", 3000), strings.ReplaceAll(hosts("host", 3000), "\n", soon),
			ErrExpiring, "of 3000 entries 0 last longer than 24 hours, and 3000 before; max_shrink is 20%",
		},
		{
			"for ten years", hosts("host", 3000), strings.ReplaceAll(hosts("host", 3000), "\n", until(time.Now().AddDate(10, 0, 0))),
			ErrExpiring, "of 3000 entries 0 have no until=, and 3000 before",
		},
		{
			"one entry, again and again", hosts("host", 3000), strings.Repeat("spam.example\n", 3000),
			ErrShrunk, "from 3000 entries to 1",
		},
		{
			"the whole world", hosts("host", 500), hosts("host", 10_001),
			ErrGrown, "from 500 entries to 10001, and max_growth is 10 (a list of less than 1000 entries may grow to 10000)",
		},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), tt.before)
			l := blockList("spam", path)
			l.URL = "https://lists.example/"
			c := stateful(t, l)
			s := openStill(t, c)
			write(t, path, tt.after)
			for range 2 {
				set, err := rescan(t, s)
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "; accept spam") {
					t.Errorf("%v\nwant %s", err, tt.says)
				}
				if st := set.Stats().Lists[0]; !st.LastGood || st.HeldSum == "" || st.Entries != strings.Count(tt.before, "\n") {
					t.Errorf("%+v", st)
				}
				must(t, s.Close())
				s = openStill(t, c)
			}
			must(t, s.Accept(t.Context(), "spam"))
			if st := s.Set().Stats().Lists[0]; st.Err != nil || st.Entries != strings.Count(tt.after, "\n") {
				t.Errorf("accepted: %+v", st)
			}
		})
	}
}

// A list whose entries all expire is not held for it, update after update.
func TestExpiringAsEver(t *testing.T) {
	day := time.Now().Truncate(time.Hour).Add(20 * time.Hour)
	list := func(n int) string { return strings.ReplaceAll(hosts("host", n), "\n", until(day)) }
	path := write(t, inDir(t, "spam.txt"), list(2000))
	l := blockList("spam", path)
	l.URL = "https://lists.example/"
	s := openStill(t, stateful(t, l))
	for n := range 5 {
		write(t, path, list(2001+n))
		if set, err := rescan(t, s); err != nil || set.Stats().Entries != 2001+n {
			t.Errorf("%d entries, %v", set.Stats().Entries, err)
		}
	}
}

// A server's message in plain text does not empty a short list from a URL; a comment does, and
// what has expired.
func TestInvalidLinesOnly(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "a.example\n")
	l := blockList("spam", path)
	for _, l.URL = range []string{"", "https://lists.example/"} {
		s := openStill(t, stateful(t, l))
		for text, held := range map[string]bool{
			"Rate limit exceeded\n":                               l.URL != "",
			"Rate limit exceeded\nb.example\n":                    false,
			"Rate limit exceeded\nb.example # until=2020-01-01\n": false,
			"# none\n": false,
		} {
			write(t, path, "a.example\n")
			if _, err := rescan(t, s); err != nil {
				t.Fatal(err)
			}
			write(t, path, text)
			if _, err := rescan(t, s); errors.Is(err, ErrInvalidLines) != held {
				t.Errorf("%q, %q: %v", l.URL, text, err)
			}
		}
	}
}

// A damaged record of what served does not stop a start, nor let anything in that the version that
// serves would not.
func TestDamagedServed(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), hosts("host", 2000))
	c := stateful(t, blockList("spam", path))
	openStill(t, c).Close()
	for _, text := range []string{"", "{", `{"served":[{}]}`, `{"served":[{"live":"9999-01-01T00:00:00Z","sum":"x","left":[-1,0,0,0]}]}`, `[]`} {
		write(t, filepath.Join(ListDir(c.StateDir, "spam"), servedName), text)
		write(t, path, hosts("host", 2000))
		s := openStill(t, c)
		write(t, path, hosts("host", 1000))
		if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
			t.Errorf("%s: %v", text, err)
		}
		must(t, s.Close())
	}
}
