package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A file is replaced in one step, also by way of another directory.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path, work := filepath.Join(dir, "file"), filepath.Join(dir, "work")
	if err := In(dir).MakeDirs("work"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ by, text string }{{".", strings.Repeat("long ", 10_000)}, {"work", "short"}, {".", ""}} {
		if err := In(dir).WriteFile("file", c.by, ".new-*", []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		wantText(t, path, c.text)
		wantNames(t, dir, "file", "work")
		wantNames(t, work)
	}
}

// A failed write leaves the old file, and no temporary one.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := In(dir)
	if err := tree.WriteFile("file", "none", ".new-*", []byte("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("by way of nowhere: %v", err)
	}
	if err := tree.WriteFile("none/file", ".", ".new-*", []byte("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to nowhere: %v", err)
	}
	if err := tree.WriteNew("none/file", ".", ".new-*", []byte("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("anew, to nowhere: %v", err)
	}
	wantText(t, path, "old")
	wantNames(t, dir, "file")
}

// If several write a new file at once, the first wins, and none gets an error.
func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	read := make([]string, 16)
	var running sync.WaitGroup
	for i := range read {
		running.Go(func() {
			if err := In(dir).WriteNew("secret", ".", "secret.*", fmt.Appendf(nil, "of %d", i)); err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			read[i] = string(text)
		})
	}
	running.Wait()
	for _, text := range read {
		if text != read[0] || !strings.HasPrefix(text, "of ") {
			t.Fatalf("%q and %q", text, read[0])
		}
	}
	wantNames(t, dir, "secret")
}
