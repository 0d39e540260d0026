package decisions

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestEmptyFile reads a history whose file is there but has nothing yet: another process has
// just made it.
func TestEmptyFile(t *testing.T) {
	w, r, dir := open(t, nil)
	write(t, w, refusal(1, time.Now()))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 0); err != nil {
			t.Fatal(err)
		}
	}
	page, err := r.Find(t.Context(), Query{})
	if err != nil || len(page.Decisions) != 0 {
		t.Errorf("%v, %v", page, err)
	}
}
