package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
)

// until is an expiry for a list file.
func until(instant time.Time) string {
	return " # until=" + instant.UTC().Format(time.RFC3339) + " a reason\n"
}

// beforeEnd opens stores of a list whose entries end soon, each later than those of
// the one before, until one is open before they have ended.
func beforeEnd(open func(end time.Time) *Store) (s *Store, set *blocklist.Set, end time.Time) {
	for wait := 2 * time.Second; ; wait *= 2 {
		end = time.Now().Add(wait).Truncate(time.Second)
		s = open(end)
		if set = s.Set(); time.Now().Before(end) {
			return s, set, end
		}
	}
}

// awaitExpiry waits for the Set after one of which entries expire, however long it
// is until the list is read again: see [content.Pause].
func awaitExpiry(t *testing.T, s *Store, set *blocklist.Set) *blocklist.Set {
	t.Helper()
	due := time.Now()
	s.mu.Lock()
	if s.live.set == set {
		due = s.live.versions[0].due()
	}
	s.mu.Unlock()
	ctx, cancel := context.WithDeadline(context.Background(), due.Add(patient))
	defer cancel()
	next, err := s.Await(ctx, set.Generation()+1)
	must(t, err)
	return next
}

// An entry's time is over without anything happening to its file.
func TestExpiry(t *testing.T) {
	var log *logBuffer
	s, set, end := beforeEnd(func(end time.Time) *Store {
		path := write(t, inDir(t, "spam.txt"), "example.com"+until(end)+
			"example.org"+until(time.Now().Add(-time.Hour))+
			"example.net\n!friend.example.net"+until(end))
		log = new(logBuffer)
		c := stateful(t, blockList("spam", path))
		c.Logger = log.logger()
		return openStore(t, c)
	})
	l := set.Stats().Lists[0]
	if l.Entries != 3 || l.Expired != 1 || !l.NextExpiry.Equal(end) {
		t.Errorf("%+v", l)
	}
	if d := lookup(t, set, verdict.Envelope, parse(t, "u@example.com")); d.Match.Reason != "a reason" && time.Now().Before(end) {
		t.Errorf("%+v", d)
	}
	next := awaitExpiry(t, s, set)
	if time.Now().Before(end) {
		t.Error("too early")
	}
	for _, set := range []*blocklist.Set{set, next} { // the old one knows too
		for address, want := range map[string]verdict.Action{"u@example.com": verdict.Accept, "u@example.org": verdict.Accept, "u@friend.example.net": verdict.Reject} {
			if got := listed(t, set, address); got != want {
				t.Errorf("generation %d, %s: %v, want %v", set.Generation(), address, got, want)
			}
		}
	}
	l = next.Stats().Lists[0]
	if l.Entries != 1 || l.Expired != 3 || !l.NextExpiry.IsZero() || next.FalsePositives() != 0 {
		t.Errorf("%+v", l)
	}
	if lines := log.lines("entries expired"); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
}

// The loop is told of a time that others than itself have read.
func TestExpiryRouses(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	s := openStill(t, fast(blockList("spam", path)))
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, want := range []time.Time{end, end.Add(time.Hour), far, {}} {
		text := "example.net\n"
		if !want.IsZero() {
			text += "example.com" + until(want)
		}
		write(t, path, text)
		_, err := rescan(t, s)
		must(t, err)
		select {
		case <-s.wake:
		default:
			t.Error("the loop was not woken")
		}
		if !want.IsZero() {
			want = want.Add(s.sources[0].live.good.Pause)
		}
		if got := s.nextExpiry(); !got.Equal(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A list that takes long to read is not read again at each end of an entry's time,
// which may come every second: lookups know that it is over. Only where the filter
// alone decides nobody asks the index.
func TestExpiryPause(t *testing.T) {
	end := time.Now().Add(-time.Minute).Truncate(time.Second)
	v := makeVersion(t, "example.com # until="+end.UTC().Format(time.RFC3339))
	for pause, current := range map[time.Duration]bool{0: false, time.Second: false, time.Hour: true} {
		v.Pause = pause
		if v.current() != current || !v.due().Equal(end.Add(pause)) {
			t.Errorf("pause %v: current %v, due %v", pause, v.current(), v.due())
		}
	}
	for _, confirm := range []bool{true, false} {
		c := fast(blockList("spam", write(t, inDir(t, "spam.txt"), "example.com"+until(end.Add(time.Hour)))))
		c.FilterOnly = !confirm
		if pause := versionAt(openStill(t, c), 0).Pause; (pause > 0) != confirm {
			t.Errorf("confirm %v: pause %v", confirm, pause)
		}
	}
}

// So many entries may expire at once that the list looks cut; but it is what was
// believed before.
func TestExpiryIsNotHeld(t *testing.T) {
	s, set, _ := beforeEnd(func(end time.Time) *Store {
		var text strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&text, "host%d.example%s", i, until(end))
		}
		path := write(t, inDir(t, "spam.txt"), text.String()+"example.com\n")
		return openStore(t, stateful(t, blockList("spam", path)))
	})
	if l := awaitExpiry(t, s, set).Stats().Lists[0]; l.Err != nil || l.Entries != 1 {
		t.Errorf("%+v", l)
	}
}

// The same while nobody looks, and with a change on top; but what goes beside
// what has expired is held as ever.
func TestExpiryWhileStopped(t *testing.T) {
	past := time.Now().Add(-time.Second)
	for _, tt := range []struct {
		name string
		keep int // entries without an end, of 2000
		want error
	}{{"what expired", 2000, nil}, {"more than that", 1500, ErrShrunk}} {
		path := write(t, inDir(t, "spam.txt"), manyLines(2000, 0))
		s := openStill(t, fast(blockList("spam", path)))
		s.running.Wait() // for what looks at the version once it is live
		before := manyTemporary(t, 2000, past)
		s.sources[0].live.good.index, s.sources[0].live.good.Entries = before.index, 4000
		write(t, path, manyLines(tt.keep, 0)+"example.net\n")
		set, err := rescan(t, s)
		if l := set.Stats().Lists[0]; !errors.Is(err, tt.want) || err == nil && l.Entries != tt.keep+1 {
			t.Errorf("%s: %v, %d entries", tt.name, err, l.Entries)
		}
	}
}

// manyTemporary is a version of n entries that stay and n that do not.
func manyTemporary(t *testing.T, n int, end time.Time) *version {
	entries := strings.Split(strings.TrimSpace(manyLines(n, 0)), "\n")
	for i := range n {
		entries = append(entries, fmt.Sprintf("temporary%d.example %s", i, strings.TrimSpace(until(end))))
	}
	return makeVersion(t, entries...)
}

// Of a list whose file is gone the last good version serves, but for what has
// expired in it; a start serves the same.
func TestExpiryWithoutSource(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com"+until(time.Now().Add(2*time.Second))+"example.net\n")
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	must(t, os.Remove(path))
	if _, err := rescan(t, s); err == nil {
		t.Error("no error")
	}
	set := s.Set()
	for deadline := time.Now().Add(patient); listed(t, set, "u@example.com") != verdict.Accept; {
		if time.Now().After(deadline) {
			t.Fatal("it does not expire")
		}
		if _, err := rescan(t, s); err == nil || s.Set() != set {
			t.Fatalf("%v, generation %d", err, s.Set().Generation())
		}
	}
	must(t, s.Close())
	s = openStill(t, c)
	if l := s.Set().Stats().Lists[0]; !l.LastGood || listed(t, s.Set(), "u@example.com") != verdict.Accept || listed(t, s.Set(), "u@example.net") != verdict.Reject {
		t.Errorf("%+v", l)
	}
}
