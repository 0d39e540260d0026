package listedit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"spamgate/internal/atomicfile"
)

// createdMode is the mode of new files: a gate that runs as another user has to read
// them.
const createdMode = 0o644

// openMissing returns an original for a file that does not exist. It reads as an empty
// file. Directories are not made.
func openMissing(path string, o Options) (*original, error) {
	f := original{path: path, target: path, missing: true}
	if tree, name, ok := o.inState(path); ok {
		f.tree, f.name = tree, name
	} else {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		f.target = filepath.Join(dir, filepath.Base(path))
		if _, err := os.Lstat(f.target); err == nil { // a dangling link: we do not choose its file
			return nil, &fs.PathError{Op: "create", Path: path, Err: fmt.Errorf("it is a symbolic link to a file that does not exist: %w", fs.ErrNotExist)}
		}
	}
	var err error
	f.file, err = os.Open(os.DevNull)
	return &f, err
}

// newFile makes an empty file for a place where there is none.
func (f *original) newFile() (*atomicfile.File, error) {
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
