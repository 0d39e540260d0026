package store

import (
	"errors"
	"io/fs"
	"path"

	"spamgate/internal/atomicfile"
)

// HasServed reports whether a state directory keeps a version of a list: its index, or one in
// the history.
func HasServed(stateDir, list string) (bool, error) {
	tree, dir := atomicfile.In(stateDir), ListName(list)
	_, err := tree.Stat(path.Join(dir, segmentName))
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	names, err := historyNames(tree, path.Join(dir, historyName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return len(names) > 0, err
}
