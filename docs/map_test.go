package docs

import (
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the imports in the map of design.md")

// everywhere are the packages at the bottom that most others import. The map leaves
// these imports out.
var everywhere = []string{"internal/text", "internal/atomicfile", "internal/atomicfile", "internal/term", "internal/version"}

// packageFacts returns the repository's packages that a package directory imports, and
// the first sentence of its documentation. It reports whether dir holds a package.
func packageFacts(t *testing.T, dir string) (imports []string, synopsis string, ok bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ok = true
		if file.Doc != nil && !strings.HasPrefix(file.Doc.Text(), "Code generated") {
			synopsis = new(doc.Package).Synopsis(file.Doc.Text())
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name, ours := strings.CutPrefix(imported, "spamgate/"); ours && !slices.Contains(everywhere, name) {
				imports = append(imports, strings.TrimPrefix(name, "internal/"))
			}
		}
	}
	slices.Sort(imports)
	return slices.Compact(imports), synopsis, ok
}

var mapRow = regexp.MustCompile("(?m)^\\| `([\\w/.]+)` \\| (.*) \\|([^|]*)\\|$")

// TestMap holds the map of design.md against the packages of the repository: each has
// a row, and the last column has its imports. With -update it writes that column, adds
// rows for new packages and takes out those of packages that are gone.
func TestMap(t *testing.T) {
	text, err := os.ReadFile("design.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- map -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatal("design.md has no map")
	}

	var want strings.Builder
	mapped := map[string]bool{}
	for _, line := range strings.SplitAfter(table, "\n") {
		m := mapRow.FindStringSubmatch(line)
		if m == nil {
			want.WriteString(line)
			continue
		}
		imports, _, ok := packageFacts(t, strings.TrimSuffix(m[1], "/..."))
		switch {
		case strings.HasSuffix(m[1], "/..."):
			mapped[m[1]] = true
			want.WriteString(line)
		case ok:
			mapped[m[1]] = true
			want.WriteString(row(m[1], m[2], imports))
		default:
			t.Logf("%s is gone", m[1])
		}
	}
	for _, dir := range unmapped(t, mapped) {
		imports, synopsis, _ := packageFacts(t, dir)
		want.WriteString(row(dir, synopsis, imports))
	}
	switch {
	case *update:
		if err := os.WriteFile("design.md", []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case want.String() != table:
		t.Errorf("the map of design.md should be (go test ./docs -update writes it):\n%s", want.String())
	}
}

// row returns a row of the map.
func row(dir, what string, imports []string) string {
	return fmt.Sprintf("| `%s` | %s | %s |\n", dir, what, strings.Join(imports, ", "))
}

// unmapped returns the directories with a package for which the map has no row, neither
// its own nor one of a directory above with "/...".
func unmapped(t *testing.T, mapped map[string]bool) (dirs []string) {
	t.Helper()
	for _, top := range []string{"cmd", "internal", "blocklist", "smtpfilter", "hashfamily"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			dir, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			dir = filepath.ToSlash(dir)
			if d.Name() == "testdata" || mapped[dir+"/..."] {
				return fs.SkipDir
			}
			if _, _, ok := packageFacts(t, dir); ok && !mapped[dir] {
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
