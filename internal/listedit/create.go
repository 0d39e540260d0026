package listedit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// createdMode is the mode of files that are made anew: a gate that runs as
// another user has to read them.
const createdMode = 0o644

// openMissing is the original of a file that is not there: nothing, which is read
// as an empty file. Directories are not made.
func openMissing(path string) (*original, error) {
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

// newFile makes an empty file that is to be at target, where none is.
func newFile(target string) (*replacement, error) {
	r, err := createReplacement(target)
	if err != nil {
		return nil, fmt.Errorf("making a file (the folder must be yours to write to): %w", err)
	}
	err = giveFile(r.file, filepath.Dir(target))
	if err == nil {
		err = r.file.Chmod(createdMode) // whatever the umask
	}
	if err != nil {
		r.discard()
		return nil, err
	}
	return r, nil
}

// placeNew gives the file its name, unless somebody has made a file of that name
// meanwhile. Another name that it had goes with discard.
func (r *replacement) placeNew() error {
	var err error
	if r.name == "" {
		err = link(r.file, r.target)
	} else {
		err = os.Link(r.name, r.target)
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrChanged
	}
	return err
}
