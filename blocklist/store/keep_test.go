package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"spamgate/blocklist"
)

// TestKeepVersion pins a list at a content that it never had.
func TestKeepVersion(t *testing.T) {
	c, path, _ := pinnedList(t, 2)
	s := openStill(t, c)
	const content = "b.example\n"
	keep := func(ctx context.Context) error {
		return KeepVersion(ctx, c.StateDir, "spam", Kept{Path: path, Entries: 1, Content: strings.NewReader(content)})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := keep(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	must(t, keep(t.Context()))
	sum, err := Opener{StateDir: c.StateDir}.ContentSumWith([]string{path}, path, sha256.Sum256([]byte(content)))
	must(t, err)
	versions, err := Versions(c.StateDir, "spam")
	must(t, err)
	if len(versions) == 0 || versions[0].Sum != sum || versions[0].Entries != 1 || versions[0].Bytes != int64(len(content)) {
		t.Fatalf("the versions are %+v", versions)
	}
	_, err = s.Pin(t.Context(), "spam", blocklist.Pin{Sum: sum, Entries: 1})
	must(t, err)
	wantServed(t, s.Set(), "b.example", true, true)
	must(t, s.Unpin(t.Context(), "spam"))
	wantServed(t, s.Set(), "a.example", false, false)
}
