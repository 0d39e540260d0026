package listedit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"spamgate/internal/durable"
)

// Names of replacements, while they have one, begin with a dot and the name of the
// file, and end with this. The dot hides them from globs.
const replacementSuffix = ".spamgate-new"

func replacementPattern(target string) (dir, prefix string) {
	return filepath.Dir(target), "." + filepath.Base(target) + "."
}

// createReplacement makes an empty file that is to be at target.
func createReplacement(target string) (*durable.File, error) {
	dir, prefix := replacementPattern(target)
	return durable.CreateUnnamed(dir, prefix+"*"+replacementSuffix, 0o600)
}

// newReplacement makes an empty file that has the owner, mode and attributes of
// old.
func newReplacement(target string, old *os.File, info fs.FileInfo) (*durable.File, error) {
	r, err := createReplacement(target)
	if err != nil {
		return nil, fmt.Errorf("making a file beside it (the folder must be yours to write to): %w", err)
	}
	if err := keepAttributes(old, info, r.File); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// removeLeftovers removes the replacements of processes that were killed. They
// had the lock which the caller has now, so none is still at work. What cannot
// be removed hurts nobody.
func removeLeftovers(target string) {
	dir, prefix := replacementPattern(target)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), replacementSuffix) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
