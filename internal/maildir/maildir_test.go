package maildir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// files returns the files in the three subdirectories, as "new/NAME".
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, sub := range []string{"tmp", "new", "cur"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, sub+"/"+entry.Name())
		}
	}
	return names
}

func open(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func create(t *testing.T, d *Dir) *File {
	t.Helper()
	f, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	if d := open(t, dir); d.Path() != dir {
		t.Errorf("path %s", d.Path())
	}
	for _, sub := range []string{"", "tmp", "new", "cur", ".."} {
		if m := mode(t, filepath.Join(dir, sub)); m != 0o700 {
			t.Errorf("%q has mode %o", sub, m)
		}
	}
	// Existing directories do not change.
	if err := os.Chmod(filepath.Join(dir, "new"), 0o750); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if m := mode(t, filepath.Join(dir, "new")); m != 0o750 {
		t.Errorf("mode changed to %o", m)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"tmp/old": 37 * time.Hour, "tmp/young": 35 * time.Hour, "new/old": 99 * time.Hour, "cur/old": 99 * time.Hour,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir)
	if got := fmt.Sprint(files(t, dir)); got != "[tmp/young new/old cur/old]" {
		t.Error(got)
	}
}

func TestDelivery(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{0, 1, bufferSize, bufferSize + 1, 300_000} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		f := create(t, d)
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(50_000))
			if _, err := f.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := files(t, dir); len(got) != 1 || got[0] != "tmp/"+f.Name() {
			t.Errorf("before the commit: %v", got)
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "new", f.Name())
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("size %d: %d bytes, different: %v", size, len(got), err)
		}
		if m := mode(t, path); m != 0o600 {
			t.Errorf("mode %o", m)
		}
		if err := f.Abort(); err != nil {
			t.Errorf("abort after the commit: %v", err)
		}
		if _, err := f.Write(nil); err == nil {
			t.Error("write after the commit")
		}
		if f.Commit() == nil {
			t.Error("second commit")
		}
		if got := files(t, dir); len(got) != 1 {
			t.Errorf("after the commit: %v", got)
		}
		os.Remove(path)
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	f := create(t, open(t, dir))
	if _, err := f.Write(make([]byte, 2*bufferSize)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Abort(); err != nil {
			t.Error(err)
		}
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

func TestCommitFails(t *testing.T) {
	dir := t.TempDir()
	f := create(t, open(t, dir))
	if err := os.Remove(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("commit: %v", err)
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left %v", got)
	}
	if _, err := (&Dir{path: filepath.Join(dir, "gone")}).Create(); err == nil {
		t.Error("created in a directory that is not there")
	}
}

// nameForm matches a unique name.
var nameForm = regexp.MustCompile(`^[0-9]+\.M[0-9]{6}P[0-9]+Q[0-9]+\.[^/:]+$`)

func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	// Two Dirs for one directory, as in two processes.
	dirs := []*Dir{open(t, dir), open(t, dir)}
	dirs[1].host = "other"
	var group sync.WaitGroup
	for g := range 32 {
		group.Go(func() {
			for i := range 50 {
				f, err := dirs[g%2].Create()
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(f, "%d %d", g, i)
				if err := f.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	contents := make(map[string]bool)
	for _, name := range files(t, dir) {
		sub, base := filepath.Split(name)
		if sub != "new/" || !nameForm.MatchString(base) {
			t.Errorf("file %s", name)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		contents[string(text)] = true
	}
	if len(contents) != 32*50 {
		t.Errorf("%d different messages, not %d", len(contents), 32*50)
	}
}

func TestEncodeHost(t *testing.T) {
	for host, want := range map[string]string{
		"gate.example": "gate.example",
		"a/b:c":        `a\057b\072c`,
	} {
		if got := encodeHost(host); got != want {
			t.Errorf("%s: %s", host, got)
		}
	}
}

// TestRemedy looks for what to do in the errors of a directory that cannot be made.
func TestRemedy(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EROFS:  "ReadWritePaths=",
		syscall.EACCES: fmt.Sprintf("for the user with the number %d", os.Geteuid()),
		syscall.ENOSPC: "",
	} {
		got := remedy(&fs.PathError{Op: "mkdir", Path: "/srv/mail", Err: err})
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%v: %q, want %q in it", err, got, want)
		}
	}
}
