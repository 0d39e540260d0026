package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// MakeDirs makes a directory and its missing parents, with mode 0700. If root
// makes them, each has the owner of its parent.
func MakeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDirs(parent); err != nil {
			return err
		}
	}
	if err := Do("mkdir", func() error { return os.Mkdir(dir, 0o700) }, dir); err != nil {
		switch info, errStat := os.Stat(dir); {
		case errStat != nil:
			return err
		case !info.IsDir():
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil // another process was faster
	}
	return errors.Join(GiveAway(dir), SyncDir(parent))
}

// SyncDir writes the names in a directory to disk, so that a file that was made or
// renamed there keeps its name after a loss of power. File systems that cannot
// sync directories do what they can.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return Do("sync", func() error { return syncDir(d) }, dir)
}

func syncDir(d *os.File) error {
	if err := d.Sync(); !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// SameFile reports whether two paths lead to one file.
func SameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// RemoveStale removes the regular files of a directory whose names begin with the
// prefix and that were not written to for age: a killed process left them.
func RemoveStale(dir, prefix string, age time.Duration) error {
	entries, err := os.ReadDir(dir)
	return errors.Join(err, removeStale(entries, prefix, age, func(name string) error {
		return Remove(filepath.Join(dir, name))
	}))
}

func removeStale(entries []fs.DirEntry, prefix string, age time.Duration, remove func(name string) error) error {
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > age {
			err = remove(e.Name())
		}
		if !errors.Is(err, fs.ErrNotExist) { // else another process was faster
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
