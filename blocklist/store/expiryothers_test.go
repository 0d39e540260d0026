package store

import (
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// TestExpiryHidesNoOther: an entry whose time is over neither hides the same entry of
// another list nor a less specific one of its own, in a Set from before the end.
func TestExpiryHidesNoOther(t *testing.T) {
	s, set, end := beforeEnd(func(end time.Time) *Store {
		first := write(t, inDir(t, "first.txt"), "u@example.com"+until(end)+"v@example.org"+until(end)+"example.org\n")
		second := write(t, inDir(t, "second.txt"), "u@example.com\n")
		return openStore(t, stateful(t, blockList("first", first), blockList("second", second)))
	})
	awaitExpiry(t, s, set)
	if time.Now().Before(end) {
		t.Fatal("too early")
	}
	for address, want := range map[string]string{"u@example.com": "second", "v@example.org": "first"} {
		d := lookup(t, set, verdict.Envelope, parse(t, address))
		if d.Action != verdict.Reject || d.Match.List != want {
			t.Errorf("%s: %v because of list %q, want reject because of %s", address, d.Action, d.Match.List, want)
		}
	}
}
