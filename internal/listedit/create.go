package listedit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"spamgate/internal/durable"
)

// createdMode is the mode of files that are made anew: a gate that runs as
// another user has to read them.
const createdMode = 0o644

// openMissing returns the original of a file that is not there: nothing, which is read
// as an empty file. Directories are not made.
func openMissing(path string, o Options) (*original, error) {
	if tree, name, ok := o.inState(path); ok {
		nothing, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		return &original{path: path, target: path, file: nothing, missing: true, tree: tree, name: name}, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	target := filepath.Join(dir, filepath.Base(path))
	if _, err := os.Lstat(target); err == nil { // a link to nowhere: its file is not ours to choose
		return nil, &fs.PathError{Op: "create", Path: path, Err: fmt.Errorf("it is a symbolic link to a file that is not there: %w", fs.ErrNotExist)}
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return &original{path: path, target: target, file: nothing, missing: true}, nil
}

// newFile makes an empty file that is to be where none is.
func (f *original) newFile() (*durable.File, error) {
	r, err := f.createReplacement()
	if err != nil {
		return nil, fmt.Errorf("making a file (the folder must be yours to write to): %w", err)
	}
	err = r.GiveAway()
	if err == nil {
		err = r.Chmod(createdMode) // whatever the umask
	}
	if err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}
