package store

import (
	"context"
	"slices"
	"testing"
	"time"
)

// Versions of days to come, from when the clock was ahead, are not newer than what
// goes live once it is right, nor is that dropped as the oldest.
func TestHistoryAfterClockThatWasAhead(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "one.example\n")
	c := stateful(t, blockList("spam", path))
	c.History = 1
	s := openStill(t, c)
	s.running.Wait()
	dir := ListName("spam") + "/" + historyName
	ahead := time.Now().UTC().Add(24 * time.Hour)
	must(t, archiveVersion(context.Background(), s.state.tree, dir, archiveJob{versionAt(s, 0), ahead, 2}, func() {}))
	for _, step := range []struct {
		text string
		want []string
	}{
		{"two.example\n", []string{"two.example\n", "one.example\n"}},
		{"three.example\n", []string{"three.example\n", "two.example\n"}},
		{"two.example\n", []string{"two.example\n", "three.example\n"}},
	} {
		goLive(t, s, path, step.text)
		if got := kept(t, c.StateDir); !slices.Equal(got, step.want) {
			t.Errorf("after %q: %q, want %q", step.text, got, step.want)
		}
	}
}
