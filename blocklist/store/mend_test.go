package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// mendable is a list of two files, with reasons, of which a version is kept in
// history. So many entries have no bits that are kept: the filter is made of the
// index each time.
func mendable(t *testing.T, log *logBuffer) (c Config, paths []string) {
	t.Helper()
	dir := filepath.Dir(inDir(t, "list"))
	paths = []string{filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")}
	for i, path := range paths {
		var b strings.Builder
		for n := range 1000 {
			fmt.Fprintf(&b, "host%d.example # reason %d\n", 1000*i+n, n+1)
		}
		write(t, path, b.String())
	}
	c = stateful(t, blockList("spam", paths...))
	c.History = 2
	c.Logger = log.logger()
	return c, paths
}

// answersOf is what a Set says of the senders of mendable, or that it fails.
func answersOf(t *testing.T, set *blocklist.Set) (matches []string, failed int) {
	t.Helper()
	for i := range 2000 {
		switch d, err := set.Lookup(verdict.Envelope, parse(t, fmt.Sprintf("u@host%d.example", i))); {
		case errors.Is(err, segment.ErrDamaged):
			failed++
		case err != nil || d.Action != verdict.Reject:
			t.Fatalf("host%d: %+v, %v", i, d, err)
		default:
			matches = append(matches, fmt.Sprint(d.Match.File, d.Match.Line, d.Match.Entry, d.Match.Reason))
		}
	}
	return matches, failed
}

// The ways for a list's files not to hold what serves.
var unhelpful = map[string]func(t *testing.T, path string){
	"gone":         func(t *testing.T, path string) { must(t, os.Remove(path)) },
	"held":         func(t *testing.T, path string) { write(t, path, "host0.example\n") },
	"unreadable":   func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) },
	"another list": func(t *testing.T, path string) { write(t, path, "\xff\xfea\x00") },
}

const mendedText = "index rebuilt from the version kept in history"

// Where the list's files do not hold what serves, a damaged index is made of what
// is kept in history, whether damage is noticed by a lookup or at the start.
func TestMend(t *testing.T) {
	for name, spoil := range unhelpful {
		t.Run(name, func(t *testing.T) {
			var log logBuffer
			c, paths := mendable(t, &log)
			s := openStill(t, c)
			s.running.Wait()
			want, _ := answersOf(t, s.Set())
			spoil(t, paths[0])
			if _, err := rescan(t, s); err == nil {
				t.Fatal("no error")
			}
			damageIndex(t, c)
			before, _ := rescan(t, s) // what was read is checked again
			if _, failed := answersOf(t, before); failed == 0 {
				t.Fatal("nothing is damaged")
			}
			set, err := rescan(t, s)
			if got, _ := answersOf(t, set); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%d answers, want %d as before", len(got), len(want))
			}
			if l := set.Stats().Lists[0]; err == nil || l.Err == nil || !l.LastGood || set.Generation() != before.Generation()+1 {
				t.Errorf("generation %d, %v: %+v", set.Generation(), err, l)
			}
			if again, _ := rescan(t, s); again != set || len(log.lines(mendedText)) != 1 {
				t.Errorf("mended again: %q", log.lines(mendedText))
			}
			must(t, s.Close())
			once(t, c)
			if len(log.lines(mendedText)) != 1 || len(log.lines("index damaged")) != 1 {
				t.Errorf("what was mended was not kept: %s", log.text.String())
			}

			damageIndex(t, c)
			if got, failed := answersOf(t, once(t, c)); failed > 0 || got[1999] != want[1999] {
				t.Errorf("after a start %d fail", failed)
			}
			if lines := log.lines(mendedText); len(lines) != 2 {
				t.Errorf("%q", lines)
			}
			if v, err := Versions(c.StateDir, "spam"); err != nil || len(v) != 1 {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// A kept version that is damaged itself is of no use, and is not tried again and
// again.
func TestMendOfDamagedHistory(t *testing.T) {
	var log logBuffer
	c, paths := mendable(t, &log)
	s := openStill(t, c)
	s.running.Wait()
	versions, err := Versions(c.StateDir, "spam")
	must(t, err)
	packed := filepath.Join(ListDir(c.StateDir, "spam"), historyName, versions[0].ID, packedName(1))
	text, err := os.ReadFile(packed)
	must(t, err)
	text[len(text)/2] ^= 1
	write(t, packed, string(text))
	must(t, os.Remove(paths[0]))
	rescan(t, s)
	damageIndex(t, c)
	set, _ := rescan(t, s)
	answersOf(t, set)
	for range 3 {
		again, err := rescan(t, s)
		if _, failed := answersOf(t, again); failed == 0 || err == nil || again != set {
			t.Errorf("%d fail, %v, generation %d", failed, err, again.Generation())
		}
	}
	if lines := log.lines("index not rebuilt"); len(lines) != 1 || !strings.Contains(lines[0], packed) && !strings.Contains(lines[0], paths[1]) {
		t.Errorf("%q", lines)
	}
}

// familyLines lists senders without a common parent: if the filter took that for
// listed, by chance, and its block was damaged, no sender could be looked up.
func familyLines(family string, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%s.example%d\n", family, i)
	}
	return b.String()
}

// rejected counts the first 100 senders of a family that are listed. The others may
// only be those that need a damaged block.
func rejected(t *testing.T, set *blocklist.Set, family string) (n int) {
	t.Helper()
	for i := range 100 {
		switch d, err := set.Lookup(verdict.Envelope, parse(t, fmt.Sprintf("u@%s.example%d", family, i))); {
		case errors.Is(err, segment.ErrDamaged):
		case err != nil || d.Action != verdict.Reject:
			t.Errorf("%s%d: %v, %v", family, i, d.Action, err)
			return 0
		default:
			n++
		}
	}
	return n
}

// A list whose index cannot be mended goes on failing, and holds no other list
// up, whatever the filter.
func TestOthersChangeBesideDamage(t *testing.T) {
	for _, filter := range []blocklist.Filter{{Kind: blocklist.KindClassic}, {Kind: blocklist.KindSharded}, {Kind: blocklist.KindSized, FPR: 0.02}, {Kind: blocklist.KindCounting, FPR: 0.02, CounterBits: 8}, {Kind: blocklist.KindFuse, FPR: 0.02}, {Kind: blocklist.KindAuto}} {
		t.Run(string(filter.Kind), func(t *testing.T) {
			var log logBuffer
			c, paths := mendable(t, &log)
			other := write(t, inDir(t, "other.txt"), "first.example\n")
			c.Lists = append(c.Lists, blockList("other", other))
			c.Lists[1].MaxGrowth = -1
			c.History, c.Filter = 0, filter
			s := openStill(t, c)
			must(t, os.Remove(paths[0]))
			rescan(t, s)
			damageIndex(t, c)
			for i, change := range []struct {
				family  string
				entries int
			}{{"second", 500}, {"third", unlessShort(20_000, 2000)}, {"fourth", unlessShort(19_000, 1900)}} {
				write(t, other, familyLines(change.family, change.entries))
				set, _ := rescan(t, s)
				if found := rejected(t, set, change.family); found == 0 {
					t.Fatalf("change %d is not live: %s", i, log.text.String())
				}
				// If the filter takes the parent of all for listed, by chance, each lookup needs its block.
				_, _, err := set.Only(nil).Trace(verdict.Envelope, parse(t, "u@example"), blocklist.FindOptions{})
				parent := err != nil
				if got, failed := answersOf(t, set); failed == 0 || len(got) == 0 && !parent {
					t.Errorf("change %d: %d answers, %d fail", i, len(got), failed)
				}
				if set.Stats().OldFilters > 1 {
					t.Error("filters form a chain")
				}
			}
			if lines := log.lines("index not rebuilt"); len(lines) != 1 {
				t.Errorf("%q", lines)
			}
			write(t, paths[0], strings.ReplaceAll(manyLines(1000, 0), "\n", " # back\n"))
			set, err := rescan(t, s)
			must(t, err)
			if _, failed := answersOf(t, set); failed > 0 || set.Stats().OldFilters > 0 || listed(t, set, "u@first.example") != verdict.Accept {
				t.Errorf("%d fail still, or the old filter stays", failed)
			}
		})
	}
}

// While an update is held, the version that serves is read again if another build of the program
// made its index.
func TestReadAgainWhileHeld(t *testing.T) {
	for name, spoil := range unhelpful {
		t.Run(name, func(t *testing.T) {
			var log logBuffer
			c, paths := mendable(t, &log)
			s := openStill(t, c)
			s.running.Wait()
			want, _ := answersOf(t, s.Set())
			old := s.sources[0].live.good
			old.stale = true
			for _, path := range paths {
				spoil(t, path)
			}
			set, err := rescan(t, s)
			if err == nil {
				t.Fatal("nothing is held")
			}
			if current := s.sources[0].live.good; current == old || current.stale {
				t.Error("the version was not read again")
			}
			if got, failed := answersOf(t, set); !slices.Equal(got, want) || failed > 0 {
				t.Errorf("%d of %d senders are listed, %d lookups failed", len(got), len(want), failed)
			}
			if n := len(log.lines("read again from history")); n != 1 {
				t.Errorf("logged %d times", n)
			}
		})
	}
}
