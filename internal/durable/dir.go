package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// MakeDirs makes a directory, for its owner alone, and those above it that are
// missing. If root makes them each belongs to whom the one above it belongs to.
func MakeDirs(dir string) error {
	if isDir(dir) {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDirs(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		switch info, errStat := os.Stat(dir); {
		case errStat != nil:
			return err
		case !info.IsDir():
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil // somebody else was faster
	}
	return errors.Join(GiveAway(dir), SyncDir(parent))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// RemoveStale removes the files of a directory whose names begin with the prefix
// and that nobody has written to for so long: who made them was killed.
func RemoveStale(dir, prefix string, age time.Duration) error {
	entries, err := os.ReadDir(dir)
	return errors.Join(err, removeStale(entries, prefix, age, func(name string) error {
		return os.Remove(filepath.Join(dir, name))
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
		if !errors.Is(err, fs.ErrNotExist) { // else somebody else was faster
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
