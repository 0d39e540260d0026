// Package docs holds the pages, and tests that compare them with the repository: links,
// commands, packages, files and log messages that a page names must exist.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// pages returns the text of each Markdown page by its path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "lists/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[path] = string(text)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d pages found", len(all))
	}
	return all
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
)

// anchor returns the fragment by which GitHub and GitLab link to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// TestLinks follows every relative link: its file and its heading must exist.
func TestLinks(t *testing.T) {
	all := pages(t)
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if fragment == "" {
				continue
			}
			headings := heading.FindAllStringSubmatch(fence.ReplaceAllString(all[file], ""), -1)
			if !slices.ContainsFunc(headings, func(h []string) bool { return anchor(h[1]) == fragment }) {
				t.Errorf("%s: %s has no heading #%s", path, file, fragment)
			}
		}
	}
}

var (
	goTest   = regexp.MustCompile("go test [^#`\n]*")
	selector = regexp.MustCompile(`-(run|bench|fuzz) +(?:'([^']*)'|(\S+))`)
	packages = regexp.MustCompile(`(?: |^)\./[\w/.]*`)
	function = regexp.MustCompile(`(?m)^func ((Test|Benchmark|Fuzz)\w+)\(`)
)

// testFunctions returns the names of tests, benchmarks and fuzz targets in a package,
// or with "/..." in all packages below a directory.
func testFunctions(t *testing.T, pattern string) []string {
	t.Helper()
	dir, recursive := strings.CutSuffix(pattern, "...")
	dir = filepath.Join(root, dir)
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (!recursive || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

// alternatives splits a regular expression at each "|" outside of parentheses.
func alternatives(expr string) (parts []string) {
	depth, begin := 0, 0
	for i, r := range expr {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				parts, begin = append(parts, expr[begin:i]), i+1
			}
		}
	}
	return append(parts, expr[begin:])
}

// TestCommands wants each "go test" of a page to name packages that exist, and by -run,
// -bench and -fuzz functions that they have.
func TestCommands(t *testing.T) {
	commands := 0
	for path, text := range pages(t) {
		for _, command := range goTest.FindAllString(text, -1) {
			var names []string
			for _, p := range packages.FindAllString(command, -1) {
				names = append(names, testFunctions(t, strings.TrimSpace(p))...)
			}
			if len(names) == 0 {
				continue // "go test ." after a cd
			}
			for _, m := range selector.FindAllStringSubmatch(command, -1) {
				for _, expr := range alternatives(m[2] + m[3]) {
					expr, _, _ = strings.Cut(expr, "/")
					switch expr {
					case "^$", "-", "XXX", "NONE":
						continue // no test, for -bench and -fuzz
					}
					commands++
					re, err := regexp.Compile(expr)
					if err != nil {
						t.Errorf("%s: %s: %v", path, command, err)
					} else if !slices.ContainsFunc(names, re.MatchString) {
						t.Errorf("%s: %s: no function matches %s", path, command, expr)
					}
				}
			}
		}
	}
	if commands < 50 {
		t.Errorf("%d names of tests found: are commands still written as this test reads them?", commands)
	}
}

var repositoryPath = regexp.MustCompile("`((?:cmd|internal|blocklist|smtpfilter|hashfamily|bench|tools|docs)/[\\w./-]*|[a-z]+\\.md)`")

// TestPaths wants the packages and files that the pages name in backquotes to exist.
func TestPaths(t *testing.T) {
	for path, text := range pages(t) {
		if strings.HasSuffix(path, "CHANGELOG.md") {
			continue // names what is gone
		}
		for _, m := range repositoryPath.FindAllStringSubmatch(text, -1) {
			name := strings.TrimSuffix(m[1], "...")
			_, err := os.Stat(filepath.Join(root, name))
			if _, beside := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil && beside != nil {
				t.Errorf("%s: %s does not exist", path, m[1])
			}
		}
	}
}

var quotedMessage = regexp.MustCompile("`([^`]+)`")

// TestLogMessages wants each message that the tables of log.md explain to be in the code.
func TestLogMessages(t *testing.T) {
	page, err := os.ReadFile("log.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, dir := range []string{"cmd", "internal", "blocklist", "smtpfilter"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	code := source.String()
	messages := 0
	for _, section := range strings.Split(string(page), "\n## ") {
		if !strings.HasPrefix(section, "Lines about") {
			continue
		}
		for _, row := range strings.Split(section, "\n") {
			if !strings.HasPrefix(row, "| `") || strings.HasPrefix(row, "| `msg`") {
				continue
			}
			first, _, _ := strings.Cut(row[2:], " | ")
			for _, m := range quotedMessage.FindAllStringSubmatch(first, -1) {
				messages++
				if !strings.Contains(code, `"`+strings.TrimSuffix(m[1], ":")) {
					t.Errorf("log.md explains %q, which the code does not log", m[1])
				}
			}
		}
	}
	if messages < 100 {
		t.Errorf("%d messages found: is log.md still written as this test reads it?", messages)
	}
}
