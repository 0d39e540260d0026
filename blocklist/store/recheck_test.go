package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// An index that is found to be damaged when the configuration is replaced does not
// go on to answer from blocks that were whole when they were first read.
func TestReloadChecksIndexes(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(100, 0))
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	a := parse(t, "u@host7.example")
	if lookup(t, s.Set(), verdict.Envelope, a).Action != verdict.Reject {
		t.Fatal("not listed")
	}
	// What a page has beyond the end of its file reads as zeros, without a fault.
	must(t, os.Truncate(filepath.Join(ListDir(c.StateDir, "spam"), segmentName), 100))
	must(t, os.Remove(path))
	must(t, s.Reload(t.Context(), c))
	if d, err := s.Set().Lookup(verdict.Envelope, a); !errors.Is(err, segment.ErrDamaged) {
		t.Errorf("%+v, %v", d, err)
	}
}
