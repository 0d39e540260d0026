package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// operations are all operations of a Tree on a name. None may follow a link or block.
var operations = map[string]func(t Tree, name string) error{
	"Open":     func(t Tree, name string) error { return closed(t.Open(name)) },
	"Append":   func(t Tree, name string) error { return closed(t.Append(name)) },
	"ReadFile": func(t Tree, name string) error { _, err := t.ReadFile(name, 100); return err },
	"StatFile": func(t Tree, name string) error { _, err := t.StatFile(name); return err },
	"ReadDir":  func(t Tree, name string) error { _, err := t.ReadDir(name); return err },
	"MakeDirs": func(t Tree, name string) error { return t.MakeDirs(name) },
	"Sync":     func(t Tree, name string) error { return t.Sync(name) },
	"Lock": func(t Tree, name string) error {
		unlock, err := t.Lock(name)
		if err == nil {
			unlock()
		}
		return err
	},
	"Create": func(t Tree, name string) error { return discarded(t.Create(name, "new-*", 0o600)) },
	"CreateUnnamed": func(t Tree, name string) error {
		f, err := t.CreateUnnamed(name, "new-*", 0o600)
		if err == nil {
			defer f.Discard()
			err = f.Commit(name + "/file")
		}
		return err
	},
	"WriteFile in it": func(t Tree, name string) error { return t.WriteFile(name+"/file", ".", "new-*", nil) },
	"Rename into it":  func(t Tree, name string) error { return t.Rename("file", name+"/file") },
	"Remove in it":    func(t Tree, name string) error { return t.Remove(name + "/precious") },
	"RemoveAll in it": func(t Tree, name string) error { return t.RemoveAll(name + "/precious") },
	"Link into it":    func(t Tree, name string) error { return t.Link("file", name+"/linked") },
}

func closed(f *os.File, err error) error {
	if err == nil {
		f.Close()
	}
	return err
}

func discarded(f *File, err error) error {
	if err == nil {
		f.Discard()
	}
	return err
}

// TestTreeTraps tries each operation on each trap, and on names that lead out of the Tree.
func TestTreeTraps(t *testing.T) {
	for name, operation := range operations {
		for kind, plant := range map[string]func(outside, path string) error{
			"link to a file":      func(outside, path string) error { return os.Symlink(filepath.Join(outside, "precious"), path) },
			"link to a directory": func(outside, path string) error { return os.Symlink(outside, path) },
			"link to nowhere":     func(outside, path string) error { return os.Symlink(filepath.Join(outside, "nowhere"), path) },
			"link inside":         func(_, path string) error { return os.Symlink("dir", path) },
			"named pipe":          func(_, path string) error { return syscall.Mkfifo(path, 0o666) },
			"way out":             func(_, _ string) error { return nil },
		} {
			top := t.TempDir()
			outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "tree")
			precious := filepath.Join(outside, "precious")
			if err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(precious, []byte("precious"), 0o600),
				os.MkdirAll(filepath.Join(dir, "dir"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
				os.WriteFile(filepath.Join(dir, "dir", "precious"), nil, 0o600), plant(outside, filepath.Join(dir, "trap"))); err != nil {
				t.Fatal(err)
			}
			place := "trap"
			if kind == "way out" {
				place = "../outside"
			}
			if err := operation(In(dir), place); err == nil {
				t.Errorf("%s over a %s: no error", name, kind)
			} else if strings.HasPrefix(kind, "link") && !errors.Is(err, ErrLink) {
				t.Errorf("%s over a %s: %v", name, kind, err)
			}
			wantText(t, precious, "precious")
			wantNames(t, outside, "precious")
			wantNames(t, filepath.Join(dir, "dir"), "precious")
		}
	}
}

// A Tree opens no hard links to files of another user, but those to files of its
// owner.
func TestTreeHardLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	top := t.TempDir()
	tree := In(filepath.Join(top, "tree"))
	secret := filepath.Join(top, "secret")
	if err := errors.Join(tree.Make(), os.WriteFile(secret, nil, 0o600), os.Link(secret, tree.Path("hard")), os.Chown(tree.Dir(), 54321, 54321)); err != nil {
		t.Fatal(err)
	}
	if err := closed(tree.Append("hard")); !IsTrap(err) {
		t.Errorf("of another user: %v", err)
	}
	if err := errors.Join(os.Chown(secret, 54321, 54321), closed(tree.Append("hard"))); err != nil {
		t.Errorf("of the owner: %v", err)
	}
}

// TestCheck checks directories with several owners and modes.
func TestCheck(t *testing.T) {
	top := t.TempDir()
	for _, c := range []struct {
		name    string
		mode    fs.FileMode
		owner   int
		warning string
		want    error
	}{
		{"own", 0o700, os.Geteuid(), "", nil},
		{"for others to read", 0o755, os.Geteuid(), "", nil},
		{"group", 0o770, os.Geteuid(), "chmod g-w", nil},
		{"everybody", 0o777, os.Geteuid(), "", ErrShared},
		{"as tmp", 0o777 | fs.ModeSticky, os.Geteuid(), "", ErrShared},
		{"another user", 0o700, 54321, "", ErrOwner},
	} {
		if c.owner != os.Geteuid() && os.Geteuid() != 0 {
			continue
		}
		dir := filepath.Join(top, c.name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, c.mode), os.Chown(dir, c.owner, -1)); err != nil {
			t.Fatal(err)
		}
		warning, err := In(dir).Check()
		if !errors.Is(err, c.want) || !strings.Contains(warning, c.warning) || (warning == "") != (c.warning == "") {
			t.Errorf("%s: %q, %v", c.name, warning, err)
		}
		if err := In(dir).WriteFile("file", ".", "new-*", nil); errors.Is(c.want, ErrShared) != errors.Is(err, ErrShared) {
			t.Errorf("%s: written to with %v", c.name, err)
		}
	}
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	if warning, err := In(filepath.Join(top, "own")).Check(); err != nil || !strings.Contains(warning, top) {
		t.Errorf("below a directory of everybody: %q, %v", warning, err)
	}
	if warning, err := In(filepath.Join(top, "none")).Check(); err != nil || warning != "" {
		t.Errorf("a missing one: %q, %v", warning, err)
	}
}

// TestReadFileTooLarge: a file that is too large is not read cut.
func TestReadFileTooLarge(t *testing.T) {
	tree := In(t.TempDir())
	if err := os.WriteFile(tree.Path("file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := tree.ReadFile("file", 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := tree.ReadFile("file", 4); err == nil {
		t.Errorf("%q", text)
	}
}
