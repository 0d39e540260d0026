package store

import (
	"testing"
	"testing/synctest"
	"time"
)

// A file whose clock is ahead of ours, as after ours was set back, has always just been changed.
// While it looks as it did, nobody writes to it, and a Rescan does not wait: with two such lists,
// one of them always waited, and it never returned. The clock of the test is in 2000.
func TestFilesFromTheFuture(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	synctest.Test(t, func(t *testing.T) {
		s, err := open(t.Context(), fast(blockList("spam", path)), false)
		must(t, err)
		defer s.Close()
		time.Sleep(time.Minute) // it looks again soon after its start
		began := time.Now()
		must(t, s.Rescan(t.Context()))
		if waited := time.Since(began); waited > 0 {
			t.Errorf("waited %v for a file that nobody changed", waited)
		}
	})
}
