package decisions

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTruncated truncates the files that SQLite maps, as "> FILE" in a shell would. The process lives: the
// history goes on with another file, and rows of the truncated ones are not found until a restart.
func TestTruncated(t *testing.T) {
	w, r, dir := open(t, nil)
	now := time.Now()
	write(t, w, refusal(1, now))
	if _, err := r.Find(t.Context(), Query{}); err != nil {
		t.Fatal(err)
	}
	maps, _ := filepath.Glob(filepath.Join(dir, "2*-shm"))
	if len(maps) == 0 {
		t.Fatal("nothing is mapped")
	}
	for _, m := range maps {
		if err := os.Truncate(m, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Find(t.Context(), Query{}); err != nil {
		t.Error(err)
	}
	w.Record(refusal(2, now))
	for w.Sync(t.Context()) != nil {
	}
	if p, err := r.Find(t.Context(), Query{ID: "ID000002"}); err != nil || len(p.Decisions) != 1 {
		t.Errorf("%v, %v, %+v", p, err, w.Stats())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(filepath.Join(dir, totalsName), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Totals(t.Context(), now.Add(-time.Hour), now); err != nil {
		t.Error(err)
	}
}
