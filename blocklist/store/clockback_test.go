package store

import (
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// A clock that is ahead has entries expire that have not. Once it is right they
// are back, although their file has not changed.
func TestExpiryByClockThatWasAhead(t *testing.T) {
	end := time.Now().Add(time.Hour)
	ahead := end.Add(time.Hour)
	path := write(t, inDir(t, "spam.txt"), "example.com"+until(end)+"example.net\n")
	var log logBuffer
	c := fast(blockList("spam", path))
	c.Logger = log.logger()
	s := openStill(t, c)
	src := s.sources[0]

	src.options.Now = ahead.Unix()
	write(t, path, "example.com"+until(end)+"example.org\n")
	set, err := rescan(t, s)
	must(t, err)
	if l := set.Stats().Lists[0]; l.Entries != 1 || l.Expired != 1 {
		t.Fatalf("with the clock ahead: %+v", l)
	}
	src.live.good.Loaded = ahead

	src.options.Now = 0
	for range 2 {
		set, err = rescan(t, s)
		must(t, err)
		if l := set.Stats().Lists[0]; l.Entries != 2 || l.Expired != 0 || listed(t, set, "u@example.com") != verdict.Reject {
			t.Errorf("with the clock right: %+v", l)
		}
	}
	if lines := log.lines("the clock was ahead"); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
}
