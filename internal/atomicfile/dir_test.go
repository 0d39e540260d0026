package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestMakeDirs(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b", "c")
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if err := MakeDirs(dir); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if err := MakeDirs(dir); err != nil {
		t.Errorf("once it is there: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("%v, %v: not a directory", info, err)
	}
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "dir")} {
		if err := MakeDirs(path); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v", path, err)
		}
	}
	nowhere := filepath.Join(top, "link")
	if err := os.Symlink("nowhere", nowhere); err != nil {
		t.Skip(err)
	}
	if err := MakeDirs(nowhere); !errors.Is(err, fs.ErrExist) {
		t.Errorf("in the place of a link: %v", err)
	}
}

// Only old regular files with the prefix are removed.
func TestRemoveStale(t *testing.T) {
	for _, remove := range []func(dir, name string) error{
		func(dir, name string) error { return RemoveStale(filepath.Join(dir, name), ".new-", time.Hour) },
		func(dir, name string) error { return In(dir).RemoveStale(name, ".new-", time.Hour) },
	} {
		dir := t.TempDir()
		long := time.Now().Add(-2 * time.Hour)
		for name, made := range map[string]time.Time{
			".new-1": long, ".new-2": long, ".new-young": time.Now(), ".other": long, "x.new-": long,
		} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, made, made)); err != nil {
				t.Fatal(err)
			}
		}
		sub := filepath.Join(dir, ".new-dir")
		if err := errors.Join(os.Mkdir(sub, 0o700), os.Chtimes(sub, long, long)); err != nil {
			t.Fatal(err)
		}
		if err := remove(dir, "."); err != nil {
			t.Error(err)
		}
		wantNames(t, dir, ".new-dir", ".new-young", ".other", "x.new-")
		if err := remove(dir, "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a missing directory: %v", err)
		}
	}
}

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing directory: %v", err)
	}
}
