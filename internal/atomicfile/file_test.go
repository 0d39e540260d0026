package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// creators are the ways to make a file: by path and in a Tree, with and without a
// temporary name.
var creators = map[string]func(dir, pattern string, mode fs.FileMode) (*File, error){
	"named": Create, "unnamed": CreateUnnamed,
	"named in a tree": func(dir, pattern string, mode fs.FileMode) (*File, error) {
		return byPathIn(dir)(In(dir).Create(".", pattern, mode))
	},
	"unnamed in a tree": func(dir, pattern string, mode fs.FileMode) (*File, error) {
		return byPathIn(dir)(In(dir).CreateUnnamed(".", pattern, mode))
	},
}

// byPathIn makes a File in a Tree accept paths.
func byPathIn(dir string) func(*File, error) (*File, error) {
	return func(f *File, err error) (*File, error) {
		if err == nil {
			f.placer = named{f.placer.(inTree)}
		}
		return f, err
	}
}

// named is an inTree that accepts paths.
type named struct{ inTree }

func (n named) name(path string) string {
	if name, ok := n.Name(path); ok && filepath.IsAbs(path) {
		return name
	}
	return path
}

func (n named) rename(from, to string) error           { return n.inTree.rename(from, n.name(to)) }
func (n named) linkName(from, to string) error         { return n.inTree.linkName(from, n.name(to)) }
func (n named) linkFile(f *os.File, name string) error { return n.inTree.linkFile(f, n.name(name)) }
func (n named) sync(dir string) error                  { return n.inTree.sync(n.name(dir)) }

// begun returns a new file with text.
func begun(t *testing.T, create func(string, string, fs.FileMode) (*File, error), dir, text string) *File {
	t.Helper()
	f, err := create(dir, ".*-1*.new", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Discard)
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

// A file replaces another in one step; before that, its name matches the pattern.
func TestCommit(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "place")
			for _, text := range []string{"first", "second"} {
				before := names(t, dir)
				f := begun(t, create, dir, text)
				meanwhile := slices.DeleteFunc(names(t, dir), func(name string) bool { return slices.Contains(before, name) })
				if (f.name == "") != (len(meanwhile) == 0) {
					t.Errorf("named %q, seen %q", f.name, meanwhile)
				}
				for _, name := range meanwhile {
					if !strings.HasPrefix(name, ".*-1") || !strings.HasSuffix(name, ".new") {
						t.Errorf("the temporary name is %q", name)
					}
				}
				if err := f.Commit(path); err != nil {
					t.Fatal(err)
				}
				f.Discard()
				wantText(t, path, text)
				wantNames(t, dir, "place")
			}
		})
	}
}

// A new file replaces no other.
func TestPlaceNew(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "place")
			first, second := begun(t, create, dir, "first"), begun(t, create, dir, "second")
			if err := first.PlaceNew(path); err != nil {
				t.Fatal(err)
			}
			if err := second.PlaceNew(path); !errors.Is(err, fs.ErrExist) {
				t.Errorf("in the place of another: %v", err)
			}
			first.Discard()
			second.Discard()
			wantText(t, path, "first")
			wantNames(t, dir, "place")
		})
	}
}

// Nothing remains of a file that was not placed.
func TestDiscard(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			begun(t, create, dir, "unwanted").Discard()
			wantNames(t, dir)

			taken := filepath.Join(dir, "taken")
			if err := os.MkdirAll(filepath.Join(taken, "inside"), 0o700); err != nil {
				t.Fatal(err)
			}
			f := begun(t, create, dir, "in the way of a directory")
			if err := f.Commit(taken); err == nil {
				t.Error("a directory was replaced")
			}
			f.Discard()
			wantNames(t, dir, "taken")

			f = begun(t, create, dir, "closed too early")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := f.Commit(filepath.Join(dir, "place")); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("of a closed file: %v", err)
			}
			f.Discard()
			wantNames(t, dir, "taken")
		})
	}
}

func TestNoDirectory(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, create := range creators {
		if f, err := create(none, ".new-*", 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
