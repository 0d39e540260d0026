package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// written returns a directory with all that the command writes.
func written(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000") // 2026-09-21
	dir := t.TempDir()
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPages wants a page of each command, with its texts and flags, of which neither groff
// nor mandoc complains.
func TestPages(t *testing.T) {
	dir := written(t)
	pages := 0
	check := func(cmd *cobra.Command) error {
		pages++
		path := filepath.Join(dir, "man1", strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, want := range []string{`" "2026-09-21" "spamgate `, minus(cmd.Short), ".SH SYNOPSIS\n", `\fB\-\-help\fP`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
		if strings.Contains(string(text), "[=") {
			t.Errorf("%s shows a flag with its internal default", path)
		}
		return nil
	}
	for _, program := range programs {
		_ = eachCommand(program(), check)
	}
	found, err := filepath.Glob(filepath.Join(dir, "man*", "*"))
	if err != nil || len(found) < pages {
		t.Errorf("%d pages of %d commands: %v", len(found), pages, err)
	}
	for _, tool := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-k", "-man", "-T", "utf8", "-ww", "-z"}} {
		lint(t, tool, found)
	}
}

// lint wants no output of a program that checks manual pages.
func lint(t *testing.T, tool, pages []string) {
	t.Run(tool[0], func(t *testing.T) {
		if _, err := exec.LookPath(tool[0]); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		if out, err := exec.Command(tool[0], append(tool[1:], pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestWidth wants the pages to fit a terminal of 80 columns.
func TestWidth(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(written(t), "man*", "*"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	for _, page := range pages {
		out, err := exec.Command("groff", "-k", "-man", "-T", "utf8", "-rLL=80n", "-P-cbou", page).Output()
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s has a line of %d columns: %s", filepath.Base(page), n, line)
			}
		}
	}
}

// TestTwice wants the same bytes of the same source and date, and no other files.
func TestTwice(t *testing.T) {
	one, other := written(t), written(t)
	files := 0
	err := filepath.WalkDir(one, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		rel, err := filepath.Rel(one, path)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(other, rel))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", rel, err)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files: %v", files, err)
	}
}

func TestNoDate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if err := run([]string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "tools/man/run") {
		t.Errorf("got %v", err)
	}
}

func TestMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"one\nline":                  "one\nline",
		"<> and *_x_* `":             "\\<\\> and \\*\\_x\\_\\* \\`",
		"a:\n\n  b  c\n\nd":          "a:\n\n```\nb  c\n```\n\nd",
		"a\n\nExit codes: 0 good.\n": "a\n\n# EXIT STATUS\n\n0 good.",
	} {
		if got := markdown(in); got != want {
			t.Errorf("markdown(%q) = %q, want %q", in, got, want)
		}
	}
}
