package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// WriteFile makes path a file that holds text, in the place of one that is there,
// by way of one in dir, on the same file system: see [Create]. It is for its owner
// alone, who is that of dir if root writes. It is on disk when WriteFile returns.
func WriteFile(path, dir, pattern string, text []byte) error {
	f, err := written(dir, pattern, text)
	if err != nil {
		return err
	}
	defer f.Discard()
	return f.Commit(path)
}

// WriteNew is WriteFile for a file that is never replaced, such as a secret: of
// several processes that write it at once, and of those that come later, it has
// what the first one wrote, and none of them an error.
func WriteNew(path, dir, pattern string, text []byte) error {
	f, err := written(dir, pattern, text)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.PlaceNew(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// written is a new file that holds text.
func written(dir, pattern string, text []byte) (*File, error) {
	f, err := Create(dir, pattern, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.GiveAway()
	}
	if err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}
