// Package defaultconfig holds copies of the shipped configuration and lists, without
// comments, for tests: users edit the originals. A test compares the copies with the
// originals, which CI has not edited.
package defaultconfig

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed config.toml lists
var files embed.FS

// Config returns the shipped config.toml, without comments.
func Config() string { return read(files, "config.toml") }

// Lists returns the shipped files of lists/, without comments.
func Lists() fs.FS {
	lists, err := fs.Sub(files, "lists")
	if err != nil {
		panic(err) // the name is a constant
	}
	return lists
}

// Clone returns the config.toml of the clone, with its comments; root is the path of
// the clone from the test. If the user has changed a setting it skips the test; in CI
// the test fails.
func Clone(t testing.TB, root string) []byte {
	t.Helper()
	config := read(os.DirFS(root), "config.toml")
	if live(config) != live(Config()) {
		Edited(t, filepath.Join(root, "config.toml"))
	}
	return []byte(config)
}

// Edited skips a test because a file differs from the shipped one; in CI it fails.
func Edited(t testing.TB, file string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s has other settings or entries than its copy in internal/defaultconfig: if it should ship so, change the copy", file)
	}
	t.Skipf("%s is edited", file)
}

// live returns the lines of a file that are not comments.
func live(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func read(from fs.FS, name string) string {
	text, err := fs.ReadFile(from, name)
	if err != nil {
		panic(err) // in a clone without it nothing can be tested
	}
	return string(text)
}
