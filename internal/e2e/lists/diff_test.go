package lists

import (
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestDiffProtected compares with an update some of whose entries the list omits.
func TestDiffProtected(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Files: map[string]string{"blocked.txt": "spam.example\n"}})
	harness.WaitFor(t, "a version to be kept", func() bool {
		return strings.Contains(g.Lists(t, 0, "rollback", "blocked", "--list-versions", "--json"), `"version"`)
	})
	g.Stop()
	harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), "spam.example\ngmail.com\n@gmail.com\nuser@gmail.com\n")
	text := g.Lists(t, 1, "diff", "blocked")
	for _, want := range []string{
		"+ user@gmail.com\n1 came, 0 went, 0 changed, 1 are the same\n",
		"not counted: 2 entries of what is on disk that the list leaves out: protected names\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("diff says %q, want %q", text, want)
		}
	}
	if text = g.Lists(t, 1, "diff", "blocked", "--json"); !strings.Contains(text, `"protected": 2`) {
		t.Errorf("diff --json says %s", text)
	}
}
