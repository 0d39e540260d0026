package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// numbered is a list of n domains.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "d%d.example\n", i)
	}
	return b.String()
}

// Two lists of the same files are two lists: a reload does not give the one what
// the other has, and so let in what is held.
func TestReloadOfListsOfTheSameFiles(t *testing.T) {
	path := write(t, inDir(t, "list"), numbered(2*guardEntries))
	lax, strict := blockList("lax", path), blockList("strict", path)
	lax.MaxShrink = 1
	c := fast(lax, strict)
	s := openStill(t, c)
	write(t, path, numbered(guardEntries))
	if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
		t.Fatalf("after it shrank: %v", err)
	}
	before, versions := s.Set(), s.live.versions
	if err := s.Reload(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	for i, l := range s.Set().Stats().Lists {
		want := before.Stats().Lists[i]
		if l.Entries != want.Entries || errorText(l.Err) != errorText(want.Err) {
			t.Errorf("list %s has %d entries, error %v; before the reload %d, %v", l.Name, l.Entries, l.Err, want.Entries, want.Err)
		}
		if versionAt(s, i) != versions[i] {
			t.Errorf("list %s has another version", l.Name)
		}
	}
}
