// Package shipped gives tests the configuration and the lists of a fresh clone,
// which those of the clone itself soon are not: they are there to be edited.
//
// It has copies of them without comments. That the copies are those that ship is
// a test of this package, which CI runs on a clone that nobody has edited.
package shipped

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

// Config is config.toml as it ships, without comments.
func Config() string { return read(files, "config.toml") }

// Lists are the files of lists/ as they ship, without comments.
func Lists() fs.FS {
	lists, err := fs.Sub(files, "lists")
	if err != nil {
		panic(err) // the name is a constant
	}
	return lists
}

// Clone is the config.toml of the clone, comments and all. A test that asks for it
// is skipped where a setting was changed: it is the user's then. In CI that
// is a failure. Root is the clone's directory, seen from the test.
func Clone(t testing.TB, root string) []byte {
	t.Helper()
	config := read(os.DirFS(root), "config.toml")
	if live(config) != live(Config()) {
		Edited(t, filepath.Join(root, "config.toml"))
	}
	return []byte(config)
}

// Edited ends a test since a file is not as it ships.
func Edited(t testing.TB, file string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s has other settings or entries than its copy in internal/shipped: where it is to ship so, change the copy", file)
	}
	t.Skipf("%s is edited", file)
}

// live is what counts of a file: the lines that are no comment.
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
