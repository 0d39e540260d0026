package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mapWords is the most words that the map has for a package.
const mapWords = 12

// A floor is a group of packages in the map of design.md.
type floor struct {
	name  string
	order int  // from the top
	tests bool // helps tests: may import anything, and no program imports it
}

var (
	mapFloor = regexp.MustCompile(`^\*\*(.+)\*\*`)
	mapLine  = regexp.MustCompile("^- `([\\w/.]+)`: (.*)$")
)

// readMap returns the floor of each package in the map of design.md; a name that ends in
// "/..." stands for all packages below a directory. It reports lines that are malformed,
// doubled or too long.
func readMap(t *testing.T) map[string]floor {
	t.Helper()
	text, err := os.ReadFile("design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- map -->\n")
	table, _, ended := strings.Cut(rest, "<!-- end -->")
	if !ok || !ended {
		t.Fatal("design.md has no map between <!-- map --> and <!-- end -->")
	}
	floors := map[string]floor{}
	var current floor
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if m := mapFloor.FindStringSubmatch(line); m != nil {
			current = floor{name: m[1], order: current.order + 1, tests: strings.Contains(m[1], "ests")}
			continue
		}
		m := mapLine.FindStringSubmatch(line)
		switch {
		case line == "":
		case m == nil:
			t.Errorf("design.md: %q is neither a floor nor a package of the map", line)
		case floors[m[1]] != floor{}:
			t.Errorf("design.md: %s has two lines in the map", m[1])
		case len(strings.Fields(m[2])) > mapWords:
			t.Errorf("design.md: the map has more than %d words for %s", mapWords, m[1])
		default:
			floors[m[1]] = current
		}
	}
	return floors
}

// importsOf returns the repository's packages that a package directory imports, without
// those of its tests. It reports whether dir holds a package.
func importsOf(t *testing.T, dir string) (imports []string, ok bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range paths {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		ok = true
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name, ours := strings.CutPrefix(imported, "spamgate/"); ours {
				imports = append(imports, name)
			}
		}
	}
	slices.Sort(imports)
	return slices.Compact(imports), ok
}

// packageDirs returns the directories of the repository that hold a package.
func packageDirs(t *testing.T) (dirs []string) {
	t.Helper()
	for _, top := range []string{"cmd", "internal", "blocklist", "smtpfilter", "hashfamily"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			dir, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			dir = filepath.ToSlash(dir)
			if _, ok := importsOf(t, dir); ok {
				dirs = append(dirs, dir)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// TestMap compares the map of design.md with the packages of the repository: each has a
// line and each line has a package, and a package imports only packages of its own floor
// or of floors below it.
func TestMap(t *testing.T) {
	floors := readMap(t)
	used := map[string]bool{}
	find := func(dir string) floor {
		for name := dir; name != "."; name = path.Dir(name) {
			for _, key := range []string{name, name + "/..."} {
				if f, ok := floors[key]; ok && (name == dir || key != name) {
					used[key] = true
					return f
				}
			}
		}
		return floor{}
	}
	for _, dir := range packageDirs(t) {
		from := find(dir)
		if from == (floor{}) {
			t.Errorf("the map of design.md lacks %s: add what it decides to its floor", dir)
			continue
		}
		if from.tests {
			continue
		}
		imports, _ := importsOf(t, dir)
		for _, name := range imports {
			switch to := find(name); {
			case to.tests:
				t.Errorf("%s imports %s, which is for tests only", dir, name)
			case to != (floor{}) && to.order < from.order:
				t.Errorf("%s (%s) imports %s (%s): the map of design.md has that floor above", dir, from.name, name, to.name)
			}
		}
	}
	for name := range floors {
		if !used[name] {
			t.Errorf("the map of design.md has %s, which is gone: remove its line", name)
		}
	}
}
