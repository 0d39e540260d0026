package listedit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogKeepsLines(t *testing.T) {
	log := &Log{Dir: filepath.Join(t.TempDir(), "state", "deep")}
	for _, what := range []string{"one", "two\nlines"} {
		r := NewRecord("add", "blocked", "/lists/blocked.txt")
		r.What, r.Why = what, "because"
		if err := log.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(readFile(t, filepath.Join(log.Dir, LogName))), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], `"what":"two\nlines","why":"because"}`) {
		t.Errorf("the log holds %q", lines)
	}
	info, err := os.Stat(filepath.Join(log.Dir, LogName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}
