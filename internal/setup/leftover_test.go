package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestLeftOver finds the entries of managed lists that are no longer configured.
func TestLeftOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	text := "[state]\ndir = \"state\"\n[[list]]\nname = \"blocked\"\nmanaged = true\n[[list]]\nname = \"own\"\npath = \"own.txt\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	warnings := func() (found []string) {
		t.Helper()
		c, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range FindFaults(c).Warnings {
			if strings.Contains(w.What, "managed list that is not configured") {
				found = append(found, w.Error())
			}
		}
		return found
	}
	if found := warnings(); found != nil {
		t.Errorf("without a state directory: %q", found)
	}
	managed := filepath.Join(dir, "state", "managed")
	if err := os.MkdirAll(filepath.Join(managed, "folder.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"blocked.txt": "a.example\n", "own.txt": "b.example\n", "old.txt": "# text\n\nc.example\n", "empty.txt": "# text\n", ".new-x": "d.example\n",
	} {
		if err := os.WriteFile(filepath.Join(managed, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(managed, "link.txt")); err != nil {
		t.Fatal(err)
	}
	found := warnings()
	if len(found) != 2 || !slices.ContainsFunc(found, func(w string) bool {
		return strings.Contains(w, "managed/old.txt has the entries") && strings.Contains(w, `name = "old"`)
	}) {
		t.Errorf("%q", found)
	}
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(managed, fmt.Sprintf("many%d.txt", i)), []byte("a.example\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := warnings(); len(found) != maxLeftOver {
		t.Errorf("%d warnings", len(found))
	}
}
