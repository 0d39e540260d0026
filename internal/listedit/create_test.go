package listedit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file that is not there is made, where that is asked for, and is for all to
// read.
func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	defer syscall.Umask(syscall.Umask(0o077))
	if _, err := writeText(t.Context(), path, []byte("new\n"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not asked for: %v", err)
	}
	if change, err := writeText(t.Context(), path, []byte("new\n"), Options{Create: true, DryRun: true}); err != nil || !change.Changed {
		t.Errorf("dry run: %+v, %v", change, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a dry run: %v", err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(filepath.Dir(path), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	change, err := writeText(t.Context(), path, []byte("new\n"), Options{Create: true})
	if err != nil || !change.Changed || change.File != path || change.Size != 4 {
		t.Fatalf("%+v, %v", change, err)
	}
	info, err := os.Stat(path)
	if err != nil || readFile(t, path) != "new\n" || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if os.Getuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Error("it does not belong to whom its directory belongs")
	}
	if more := others(t, path); more != nil {
		t.Errorf("left beside it: %q", more)
	}
	if _, err := writeText(t.Context(), path, []byte("again\n"), Options{Create: true}); err != nil || readFile(t, path) != "again\n" {
		t.Errorf("once it is there: %v", err)
	}
}

// Nothing is made where it is not known what, or over what somebody else made.
func TestCreateRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	meanwhile := func(Change) error { return os.WriteFile(path, []byte("theirs\n"), 0o600) }
	if _, err := writeText(t.Context(), path, []byte("ours\n"), Options{Create: true, Before: meanwhile}); !errors.Is(err, ErrChanged) {
		t.Errorf("somebody else was faster: %v", err)
	}
	if readFile(t, path) != "theirs\n" || others(t, path) != nil {
		t.Errorf("it holds %q, beside %q", readFile(t, path), others(t, path))
	}
	nowhere := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", nowhere); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a link to nowhere": nowhere, "no directory": filepath.Join(t.TempDir(), "none", "list.txt")} {
		if _, err := writeText(t.Context(), path, []byte("ours\n"), Options{Create: true}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path = filepath.Join(t.TempDir(), "list.txt")
	if _, err := writeText(ctx, path, []byte("ours\n"), Options{Create: true}); !errors.Is(err, context.Canceled) || others(t, path) != nil {
		t.Errorf("cancelled: %v, beside %q", err, others(t, path))
	}
}
