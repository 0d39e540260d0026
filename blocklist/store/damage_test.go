package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// damageIndex changes the middle of a list's stored index, where its entries are.
func damageIndex(t *testing.T, c Config) {
	t.Helper()
	path := filepath.Join(ListDir(c.StateDir, "spam"), segmentName)
	text, err := os.ReadFile(path)
	must(t, err)
	for i := len(text) / 4; i < len(text)*3/4; i++ {
		text[i] ^= 0x5a
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // the same file, which is mapped
	must(t, err)
	_, err = f.Write(text)
	must(t, errors.Join(err, f.Close()))
}

// damagedEntries are so many that the list's bits for the filter are kept, and
// its index is not read at the start: blocks that were read are known to be good.
const damagedEntries = partKeys + 1000

// damagedStore serves an index that has been damaged since it was built, without
// anybody having noticed: nothing was looked up.
func damagedStore(t *testing.T, log *logBuffer) (s *Store, c Config, path string) {
	t.Helper()
	path = write(t, inDir(t, "spam.txt"), manyLines(damagedEntries, 0))
	c = stateful(t, blockList("spam", path))
	c.Probes = -1 // which would read the index before the test does
	once(t, c)
	c.Logger = log.logger()
	s = openStore(t, c)
	damageIndex(t, c)
	return s, c, path
}

// damagedSender is a sender whose entry is in the damaged part: half of them are,
// and which ones depends on the key.
func damagedSender(t *testing.T, set *blocklist.Set) sender.Address {
	t.Helper()
	for i := range 100 {
		a := parse(t, fmt.Sprintf("u@host%d.example", i))
		if d, err := set.Lookup(verdict.Envelope, a); err != nil {
			if !errors.Is(err, segment.ErrDamaged) || d.Action != verdict.Accept || d.Matches != nil {
				t.Fatalf("%+v, %v; want %v", d, err, segment.ErrDamaged)
			}
			return a
		}
	}
	t.Fatal("nothing is damaged")
	return sender.Address{}
}

// A lookup that meets damage fails, and does not say that the sender is not
// listed. The list is read again, once, and then the lookup succeeds.
func TestDamageIsRepaired(t *testing.T) {
	var log logBuffer
	s, c, _ := damagedStore(t, &log)
	before := s.Set()
	sender := damagedSender(t, before)
	damagedSender(t, before)
	set := await(t, s, before.Generation()+1)
	if d := lookup(t, set, verdict.Envelope, sender); d.Action != verdict.Reject || d.Match.Line == 0 {
		t.Errorf("%+v", d)
	}
	if _, err := rescan(t, s); err != nil || s.Set() != set {
		t.Errorf("generation %d, %v", s.Set().Generation(), err)
	}
	for _, text := range []string{"index damaged", "index rebuilt after damage"} {
		if lines := log.lines(text); len(lines) != 1 {
			t.Errorf("%q in the log: %q", text, lines)
		}
	}
	must(t, s.Close())
	if set := once(t, c); listed(t, set, "u@host1234.example") != verdict.Reject {
		t.Error("the rebuilt index was not kept")
	}
}

// While the list cannot be read, lookups go on to fail, and what the filter rules
// out is known not to be listed.
func TestDamageWithoutSource(t *testing.T) {
	var log logBuffer
	s, _, path := damagedStore(t, &log)
	must(t, os.Remove(path))
	sender := damagedSender(t, s.Set())
	if _, err := rescan(t, s); err == nil {
		t.Error("no error, although the file is gone")
	}
	if _, err := s.Set().Lookup(verdict.Envelope, sender); !errors.Is(err, segment.ErrDamaged) {
		t.Error(err)
	}
	if listed(t, s.Set(), "u@not-there.example") != verdict.Accept {
		t.Error("not accepted")
	}
	write(t, path, manyLines(damagedEntries, 0))
	set, err := rescan(t, s)
	must(t, err)
	if lookup(t, set, verdict.Envelope, sender).Action != verdict.Reject {
		t.Error("not repaired")
	}
}

// Damage that is found at the start, when the filter is made of the index, has
// the list read again.
func TestDamageAtStart(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(2000, 0))
	c := stateful(t, blockList("spam", path))
	settled(t, c, path)
	damageIndex(t, c)
	var log logBuffer
	c.Logger = log.logger()
	s := openStill(t, c)
	if listed(t, s.Set(), "u@host1234.example") != verdict.Reject {
		t.Error("not listed")
	}
	if lines := log.lines("index damaged"); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
	must(t, s.Close())
	// With nothing to read it again from, there is no list.
	settled(t, c, path)
	damageIndex(t, c)
	must(t, os.Remove(path))
	if _, _, err := Build(context.Background(), c); !errors.Is(err, segment.ErrDamaged) {
		t.Error(err)
	}
}

// A counting filter is changed by what went and what came. Where the index that
// tells what went is damaged, it is made anew, or no list would ever change again.
func TestCountingAfterDamage(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(2000, 0))
	c := stateful(t, blockList("spam", path))
	c.Filter = blocklist.Filter{Kind: blocklist.KindCounting}
	s := openStill(t, c)
	// The disk loses all of the file but its beginning: what is mapped is gone.
	must(t, os.Truncate(filepath.Join(ListDir(c.StateDir, "spam"), segmentName), 100))
	write(t, path, manyLines(2000, 0)+"example.net\n")
	set, err := rescan(t, s)
	if err != nil || listed(t, set, "u@example.net") != verdict.Reject || listed(t, set, "u@host1234.example") != verdict.Reject {
		t.Errorf("generation %d: %v", set.Generation(), err)
	}
}
