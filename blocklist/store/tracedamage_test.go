package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// Where an index is damaged and the filter that was made of it is asked too, a
// trace asks it as a lookup does.
func TestTraceWithDamage(t *testing.T) {
	for _, f := range []struct{ before, after blocklist.Filter }{
		{blocklist.Filter{Kind: blocklist.KindFuse, FPR: 0.01}, blocklist.Filter{Kind: blocklist.KindFuse, FPR: 1e-6}},
		{blocklist.Filter{Kind: blocklist.KindSized, FPR: 0.01}, blocklist.Filter{Kind: blocklist.KindSized, FPR: 1e-6}},
		{blocklist.Filter{Kind: blocklist.KindCounting}, blocklist.Filter{Kind: blocklist.KindFuse}},
		{blocklist.Filter{Kind: blocklist.KindFuse}, blocklist.Filter{Kind: blocklist.KindClassic}},
	} {
		t.Run(string(f.before.Kind)+" to "+string(f.after.Kind), func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), manyLines(100, 0))
			c := stateful(t, blockList("spam", path), blockList("other", write(t, inDir(t, "other.txt"), "other.example\n")))
			c.Filter = f.before
			s := openStill(t, c)
			must(t, os.Truncate(filepath.Join(ListDir(c.StateDir, "spam"), segmentName), 100))
			must(t, os.Remove(path))
			c.Filter = f.after
			must(t, s.Reload(t.Context(), c))
			if s.Set().Stats().OldFilters == 0 {
				t.Fatal("the filter before is not asked")
			}
			asked := func(address string) error {
				a := parse(t, address)
				_, err := s.Set().Lookup(verdict.Envelope, a)
				if _, _, traced := s.Set().Only(nil).Trace(verdict.Envelope, a, blocklist.FindOptions{}); errors.Is(traced, segment.ErrDamaged) != errors.Is(err, segment.ErrDamaged) {
					t.Errorf("%s: the trace says %v, the lookup %v", address, traced, err)
				}
				return err
			}
			if err := asked("u@host7.example"); !errors.Is(err, segment.ErrDamaged) {
				t.Errorf("a listed sender: %v", err)
			}
			clean := 0 // the others are false positives
			for i := range 100 {
				if asked(fmt.Sprintf("u%d@clean%d.test%d", i, i, i)) == nil {
					clean++
				}
			}
			if clean < 50 {
				t.Errorf("only %d of 100 clean senders pass", clean)
			}
		})
	}
}
