package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Only the owner has access to files and directories, except to files that are made
// with a mode, to which the umask applies.
func TestMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := filepath.Join(t.TempDir(), "dir")
	if err := errors.Join(
		MakeDirs(dir),
		In(dir).WriteFile("written", ".", ".new-*", nil),
		In(dir).WriteNew("new", ".", ".new-*", nil),
	); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{"": 0o700, "written": 0o600, "new": 0o600}
	for name, create := range creators {
		f, err := create(dir, ".new-*", 0o666)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Discard()
		if err := f.Commit(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		want[name] = 0o640
	}
	for name, mode := range want {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q has mode %v, %v; want %v", name, info.Mode().Perm(), err, mode)
		}
	}
}

// Files that root makes belong to the owner of the directory.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const user, group = 54321, 54322
	top := t.TempDir()
	if err := os.Chown(top, user, group); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "a", "b")
	if err := errors.Join(
		MakeDirs(dir),
		In(dir).WriteFile("written", ".", ".new-*", nil),
		In(dir).WriteNew("new", ".", ".new-*", nil),
	); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Dir(dir), dir, filepath.Join(dir, "written"), filepath.Join(dir, "new")}
	for name, create := range creators {
		path := filepath.Join(dir, name)
		f := begun(t, create, dir, "")
		if err := errors.Join(f.GiveAway(), f.Commit(path)); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != user || st.Gid != group {
			t.Errorf("%s belongs to %d, %d", path, st.Uid, st.Gid)
		}
	}
}
