package logging

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFile appends to a new file, and checks its mode.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate.log")
	if err := CheckFile(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("to check has made it")
	}
	for range 2 {
		l, err := New(Options{Output: OutputFile + path, Stderr: new(bytes.Buffer)})
		if err != nil {
			t.Fatal(err)
		}
		l.Logger.Info("line")
		l.Close()
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), " msg=line\n") != 2 {
		t.Errorf("got %q, %v", text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&^fileMode != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestFileRefused tries files that are not regular, and links that others could make.
func TestFileRefused(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o775, 0o757, 0o1777} {
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(open, "link")
		if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
			t.Fatal(err)
		}
		if _, err := openFile(link, os.O_CREATE); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("directory of mode %o: got %v", mode, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "target")); err == nil {
		t.Error("what the links lead to was made")
	}

	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reader := range []bool{false, true} {
		if reader {
			r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
		}
		if err := CheckFile(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("a named pipe: got %v", err)
		}
	}
}
