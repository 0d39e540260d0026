package listedit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// replacement is a new file that is to take another's place.
type replacement struct {
	file   *os.File
	target string
	name   string // "" while it has none (Linux)
	placed bool
}

// Names of replacements begin with a dot and the name of the file, and end with
// this. The dot hides them from globs.
const replacementSuffix = ".spamgate-new"

func replacementPattern(target string) (dir, prefix string) {
	dir, base := filepath.Split(target)
	return dir, "." + base + "."
}

// newReplacement makes an empty file that has the owner, mode and attributes of
// old.
func newReplacement(target string, old *os.File, info fs.FileInfo) (*replacement, error) {
	r, err := createReplacement(target)
	if err != nil {
		return nil, fmt.Errorf("making a file beside it (the folder must be yours to write to): %w", err)
	}
	if err := keepAttributes(old, info, r.file); err != nil {
		r.discard()
		return nil, err
	}
	return r, nil
}

// createNamed makes a replacement that has a name from the start.
func createNamed(target string) (*replacement, error) {
	name := replacementName(target)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &replacement{file: file, target: target, name: name}, nil
}

func replacementName(target string) string {
	dir, prefix := replacementPattern(target)
	return dir + prefix + rand.Text() + replacementSuffix
}

// place renames the file, and gives it a name before if it has none.
func (r *replacement) place() error {
	if r.name == "" {
		name := replacementName(r.target)
		if err := link(r.file, name); err != nil {
			return fmt.Errorf("giving the new file a name: %w", err)
		}
		r.name = name
	}
	if err := os.Rename(r.name, r.target); err != nil {
		return err
	}
	r.placed = true
	return nil
}

// discard closes the file, and removes it unless it is in its place.
func (r *replacement) discard() {
	_ = r.file.Close() // all of it has been synced, or is not wanted
	if !r.placed && r.name != "" {
		_ = os.Remove(r.name)
	}
}

// removeLeftovers removes the replacements of processes that were killed. They
// had the lock which the caller has now, so none is still at work. What cannot
// be removed hurts nobody.
func removeLeftovers(target string) {
	dir, prefix := replacementPattern(target)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), replacementSuffix) {
			_ = os.Remove(dir + e.Name())
		}
	}
}

// syncDir makes the names in a directory outlast a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
