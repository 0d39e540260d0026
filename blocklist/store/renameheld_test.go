package store

import (
	"errors"
	"testing"
)

// A list that is renamed while an update of it is held serves what it served, over
// restarts too.
func TestRenamedWhileHeld(t *testing.T) {
	path := write(t, inDir(t, "list"), numbered(2*guardEntries))
	c := stateful(t, blockList("before", path))
	s := openStill(t, c)
	write(t, path, numbered(guardEntries))
	if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
		t.Fatal(err)
	}
	c.Lists = []List{blockList("after", path)}
	must(t, s.Reload(t.Context(), c))
	for _, when := range []string{"after the reload", "after a restart"} {
		if l := s.Set().Stats().Lists[0]; l.Entries != 2*guardEntries || !errors.Is(l.Err, ErrShrunk) {
			t.Errorf("%s: %d entries, error %v", when, l.Entries, l.Err)
		}
		must(t, s.Close())
		s = openStill(t, c)
	}
}
