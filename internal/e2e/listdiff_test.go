package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDiffProtected compares with an update of which the list leaves entries out.
func TestDiffProtected(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{files: map[string]string{"blocked.txt": "spam.example\n"}})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(lateLimit); !strings.Contains(g.lists(t, 0, "rollback", "blocked", "--list-versions", "--json"), `"version"`); <-tick.C {
		if time.Now().After(late) {
			t.Fatal("no version is kept")
		}
	}
	g.stop()
	writeFile(t, filepath.Join(g.dir, "blocked.txt"), "spam.example\ngmail.com\n@gmail.com\nuser@gmail.com\n")
	text := g.lists(t, 1, "diff", "blocked")
	for _, want := range []string{
		"+ user@gmail.com\n1 came, 0 went, 0 changed, 1 are the same\n",
		"not counted: 2 entries of what is on disk that the list leaves out: protected names\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("diff says %q, want %q", text, want)
		}
	}
	if text = g.lists(t, 1, "diff", "blocked", "--json"); !strings.Contains(text, `"protected": 2`) {
		t.Errorf("diff --json says %s", text)
	}
}
