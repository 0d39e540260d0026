package fleet

import (
	"path/filepath"
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// TestKindChanges has a list that the gates keep become one from a URL, and back.
func TestKindChanges(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := startGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.mustAdd("blocked", "one@example.net")
	equal(t, "blocked", a, b)
	kept := map[*gate][]List{}
	for _, g := range []*gate{a, b} {
		g.stop()
		kept[g] = g.o.Lists
		g.o.Lists = []List{{Name: "blocked", Kind: Fetched, Path: filepath.Join(g.o.StateDir, "copies", "web", "blocked.txt"), MaxBytes: 1 << 20}}
	}
	a.write("blocked", "fetched@example.net\n")
	a.start()
	b.start()
	has(t, "blocked", "fetched@example.net\n", a, b)
	for _, g := range []*gate{a, b} {
		g.stop()
		g.o.Lists = kept[g]
		g.start()
	}
	equal(t, "blocked", a, b)
	b.mustAdd("blocked", "two@example.net")
	has(t, "blocked", "# kept by spamgate\none@example.net\ntwo@example.net\n", a, b)
}
