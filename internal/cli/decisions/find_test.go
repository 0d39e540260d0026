package decisions

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"spamgate/internal/cli/local"
	history "spamgate/internal/decisions"
)

// TestFindPages asks for more decisions than one answer has.
func TestFindPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "decisions")
	w, err := history.Open(history.Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	const all = 2500
	for i := range all {
		w.Record(&history.Decision{ID: fmt.Sprint(i), Time: time.Now(), Event: "refused", Sender: fmt.Sprintf("a%d@spam.example", i)})
	}
	if err := errors.Join(w.Sync(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	r := history.NewReader(dir)
	defer r.Close()
	s := &session{ctx: t.Context(), history: &local.History{History: r}}
	for last, want := range map[int]int{1: 1, 1000: 1000, 1001: 1001, 2400: 2400, 10000: all} {
		page, err := s.find(history.Query{Domain: "spam.example"}, last, true)
		if err != nil || len(page.Decisions) != want || (page.Next == "") != (want == all) || page.Reach == nil {
			t.Errorf("--last %d: %d, %q, %v", last, len(page.Decisions), page.Next, err)
			continue
		}
		if first, end := page.Decisions[0].ID, page.Decisions[want-1].ID; first != fmt.Sprint(all-1) || end != fmt.Sprint(all-want) {
			t.Errorf("--last %d: %s to %s", last, first, end)
		}
	}
}
