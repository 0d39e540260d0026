package listedit

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"spamgate/internal/atomicfile"
)

// replacementSuffix ends the names of replacements, if they have one. They begin with a
// dot, which hides them from globs, and the name of the file.
const replacementSuffix = ".spamgate-new"

// createReplacement makes an empty file that will replace f.
func (f *original) createReplacement() (*atomicfile.File, error) {
	pattern := f.leftoverPrefix() + "*" + replacementSuffix
	if f.name != "" {
		return f.tree.CreateUnnamed(path.Dir(f.name), pattern, 0o600)
	}
	return atomicfile.CreateUnnamed(filepath.Dir(f.target), pattern, 0o600)
}

// leftoverPrefix begins the names of replacements.
func (f *original) leftoverPrefix() string { return "." + filepath.Base(f.target) + "." }

// newReplacement makes an empty file with the owner, mode and attributes of f.
func (f *original) newReplacement() (*atomicfile.File, error) {
	r, err := f.createReplacement()
	if err != nil {
		return nil, fmt.Errorf("making a file beside it (the folder must be yours to write to): %w", err)
	}
	if err := keepAttributes(f.file, f.info, r.File); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// removeLeftovers removes the replacements of killed processes. They had the lock that
// the caller has now, so none still works. What cannot be removed does no harm.
func (f *original) removeLeftovers() {
	dir := filepath.Dir(f.target)
	readDir := func() ([]fs.DirEntry, error) { return os.ReadDir(dir) }
	remove := func(name string) error { return atomicfile.Remove(filepath.Join(dir, name)) }
	if f.name != "" {
		readDir = func() ([]fs.DirEntry, error) { return f.tree.ReadDir(path.Dir(f.name)) }
		remove = func(name string) error { return f.tree.Remove(path.Join(path.Dir(f.name), name)) }
	}
	entries, err := readDir()
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), f.leftoverPrefix()) && strings.HasSuffix(e.Name(), replacementSuffix) {
			_ = remove(e.Name())
		}
	}
}
