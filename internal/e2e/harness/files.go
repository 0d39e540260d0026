package harness

import (
	"os"
	"path/filepath"
	"testing"
)

// WriteFile writes a file that everybody may read, and makes the directories above it.
// It replaces an old file in one step, so a gate never sees a part of the new one. The
// lists package has the other ways in which programs write files.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// HasNoFiles reports whether there is no file in these directories of root, or in the
// directories below them.
func HasNoFiles(root string, names ...string) bool {
	for _, name := range names {
		found := false
		filepath.WalkDir(filepath.Join(root, name), func(_ string, d os.DirEntry, err error) error {
			found = found || err == nil && !d.IsDir()
			return nil // a file that is gone is no error
		})
		if found {
			return false
		}
	}
	return true
}

// ReadAll returns the contents of the files in a directory.
func ReadAll(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}
