package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var codeName = regexp.MustCompile("`((?:cmd|internal|blocklist|smtpfilter|hashfamily|docs|tools|packaging)/[\\w./-]+)(?::(\\w+))?`")

// TestMaintainNames wants the files and directories that maintain.md names to exist, and a
// name after a colon to be declared in the file.
func TestMaintainNames(t *testing.T) {
	page := readMaintain(t)
	names := codeName.FindAllStringSubmatch(page, -1)
	if len(names) < 100 {
		t.Errorf("%d names of files found: is maintain.md still written as this test reads it?", len(names))
	}
	for _, m := range names {
		path, name := filepath.Join(root, m[1]), m[2]
		if _, err := os.Stat(path); err != nil {
			t.Errorf("maintain.md: %v", err)
			continue
		}
		if name == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("maintain.md: %v", err)
			continue
		}
		if !regexp.MustCompile(`(?m)^(?:func (?:\([^)]+\) )?|type |var |const |\t)` + name + `\b`).Match(text) {
			t.Errorf("maintain.md: %s declares no %s", m[1], name)
		}
	}
}

var costRow = regexp.MustCompile("(?m)^\\| (.*) \\| `(.*)` \\| (\\d+) \\|$")

// TestMaintainCosts counts the Go files that name an example of each kind of addition. More
// of them than maintain.md says mean that such an addition has become more expensive.
func TestMaintainCosts(t *testing.T) {
	_, rest, _ := strings.Cut(readMaintain(t), "<!-- cost -->\n")
	table, _, ok := strings.Cut(rest, "<!-- end -->")
	rows := costRow.FindAllStringSubmatch(table, -1)
	if !ok || len(rows) < 5 {
		t.Fatalf("maintain.md has %d costs of additions", len(rows))
	}
	files := goFiles(t)
	for _, m := range rows {
		example, err := regexp.Compile(strings.ReplaceAll(m[2], `\|`, "|"))
		if err != nil {
			t.Errorf("maintain.md: %s: %v", m[1], err)
			continue
		}
		limit, err := strconv.Atoi(m[3])
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for path, text := range files {
			if example.MatchString(text) {
				found = append(found, path)
			}
		}
		switch {
		case len(found) == 0:
			t.Errorf("maintain.md: no file names the example of %s: choose another one", m[1])
		case len(found) > limit:
			t.Errorf("maintain.md: %s touches %d Go files, more than %d: %q", m[1], len(found), limit, found)
		case len(found) < limit:
			t.Logf("maintain.md: %s touches %d Go files: lower the limit of %d", m[1], len(found), limit)
		}
	}
}

// goFiles returns the text of the repository's Go files by their path, without those of
// tools and of benchmarks.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, top := range []string{"cmd", "internal", "blocklist", "smtpfilter", "hashfamily"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			files[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func readMaintain(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("maintain.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
