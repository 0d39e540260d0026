package blocklist

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// The names in a state directory, and in a list's directory there.
const (
	keyName      = "lists.key"
	workName     = "work"
	segmentName  = "current.seg"
	stampsName   = "current.json"
	bitsName     = "current.bits"
	acceptedName = "accepted"
	historyName  = "history"

	// In the history of a list, the version that is being kept.
	unfinishedName = ".new"
)

// ListDir is where a state directory keeps what belongs to a list. Names that
// are no names of files are written with percent signs, as in URLs.
func ListDir(stateDir, list string) string {
	name := url.PathEscape(list)
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:]
	}
	return filepath.Join(stateDir, "lists", name)
}

// makeDirs makes a directory in the state directory, and those on the way. Like
// writeFile it gives what it makes to whom the state directory is: root may run a
// tool beside a gate that is not root.
func makeDirs(stateDir, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); dir != stateDir && parent != dir {
		if err := makeDirs(stateDir, parent); err != nil {
			return err
		}
	} else {
		return os.MkdirAll(dir, 0o700)
	}
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return nil // somebody else was faster
	case err != nil:
		return err
	}
	return giveAway(dir)
}

// giveAway gives what root has made to whom the directory is that it is in.
func giveAway(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	user, group, ok := ownerOf(info)
	if !ok {
		return nil
	}
	return os.Lchown(path, user, group)
}

// writeFile replaces a small file as one step, by way of a temporary directory on
// the same file system. It is on disk when it returns.
func writeFile(path, temporary string, text []byte) error {
	f, err := os.CreateTemp(temporary, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = giveAway(f.Name())
	}
	if err == nil {
		err = f.Sync()
	}
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir has the kernel put a directory's names on disk, so that a rename in it
// survives a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing: %w", err)
	}
	return nil
}
