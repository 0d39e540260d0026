package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist/verdict"
)

// TestBegins: a list that has never been kept may lack its file. One that has may not.
func TestBegins(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "own.txt")
	c := Config{StateDir: filepath.Join(dir, "state"), Lists: []List{{Name: "own", Paths: []string{path}, Whole: true, Begins: true, Action: verdict.Reject}}}
	build := func() (entries int, err error) {
		c := c
		c.ReadOnly = true
		_, stats, err := Build(context.Background(), c)
		if len(stats) == 1 {
			entries, err = stats[0].Entries, errors.Join(err, stats[0].Err)
		}
		return entries, err
	}
	if n, err := build(); n != 0 || err != nil {
		t.Errorf("before it begins: %d entries, %v", n, err)
	}
	if served, err := HasServed(c.StateDir, "own"); served || err != nil {
		t.Errorf("served %t, %v", served, err)
	}
	if err := os.WriteFile(path, []byte("spam.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if served, err := HasServed(c.StateDir, "own"); !served || err != nil {
		t.Errorf("served %t, %v", served, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if n, err := build(); n != 1 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("when the file is gone: %d entries, %v", n, err)
	}
}
