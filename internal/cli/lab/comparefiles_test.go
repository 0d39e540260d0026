package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// thousand is a corpus that is large enough.
func thousand() string {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "example%d.com\n", i)
	}
	return text.String()
}

// TestCompareSparesFiles wants no file lost that is read, printed to or not
// spamgate's own, whatever it is called, and that told before anything is
// measured.
func TestCompareSparesFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string // {} is the folder
		want   string
		stdin  string // a file that standard input comes from
		stdout string // likewise
	}{
		{name: "the corpus", args: []string{"--corpus", "{}/words.txt", "--html", "{}/words.txt"}, want: "is the file of --corpus"},
		{name: "the corpus by another path", args: []string{"--corpus", "{}/words.txt", "--html", "{}/pictures/../words.txt"}, want: "is the file of --corpus"},
		{name: "the corpus by a link", args: []string{"--corpus", "{}/words.txt", "--html", "{}/soft"}, want: "is the file of --corpus"},
		{name: "the page by a link to the corpus", args: []string{"--corpus", "{}/soft", "--html", "{}/words.txt"}, want: "is the file of --corpus"},
		{name: "the corpus by a hard link", args: []string{"--corpus", "{}/words.txt", "--html", "{}/hard"}, want: "is the file of --corpus"},
		{name: "one of two corpora", args: []string{"--corpus", "{}/other.txt", "--corpus", "{}/words.txt", "--html", "{}/words.txt"}, want: "is the file of --corpus"},
		{name: "standard input", args: []string{"--corpus", "-", "--html", "{}/words.txt"}, stdin: "words.txt", want: "is the file of standard input"},
		{name: "standard output", args: []string{"--html", "{}/empty.html"}, stdout: "empty.html", want: "is the file of standard output"},
		{name: "standard output into the corpus", args: []string{"--corpus", "{}/words.txt"}, stdout: "words.txt", want: "standard output goes to the file of --corpus"},
		{name: "another's text", args: []string{"--html", "{}/other.txt"}, want: "neither empty nor a page of this command"},
		{name: "another's page", args: []string{"--html", "{}/theirs.html"}, want: "neither empty nor a page of this command"},
		{name: "a corpus among the pictures", args: []string{"--corpus", "{}/pictures/words.svg", "--pictures", "{}/pictures"}, want: "words.svg in it is the file of --corpus"},
		{name: "a link to a corpus among the pictures", args: []string{"--corpus", "{}/other.txt", "--pictures", "{}/pictures"}, want: "soft.svg in it is the file of --corpus"},
		{name: "standard output among the pictures", args: []string{"--pictures", "{}/pictures"}, stdout: "pictures/words.svg", want: "words.svg in it is the file of standard output"},
		{name: "the page among the pictures", args: []string{"--html", "{}/pictures/page.svg", "--pictures", "{}/pictures"}, want: "name a page that ends in .html"},
		{name: "the page as the folder of pictures", args: []string{"--html", "{}/new", "--pictures", "{}/pictures/../new/"}, want: "name a file and a folder"},
		{name: "the page by a link among the pictures", args: []string{"--html", "{}/ours.html", "--pictures", "{}/pictures"}, want: "ours.svg in it is the page of --html"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := spareFiles(t)
			before := contents(t, dir)
			cmd := (&comparison{run: func(context.Context, hashlab.Options) (*hashlab.Report, error) {
				t.Error("measured")
				return labReport(), nil
			}}).command()
			cmd.SilenceErrors = true
			cmd.SetIn(opened(t, dir, c.stdin, os.O_RDONLY))
			cmd.SetOut(opened(t, dir, c.stdout, os.O_WRONLY|os.O_APPEND))
			cmd.SetErr(io.Discard)
			args := make([]string, len(c.args))
			for i, arg := range c.args {
				args[i] = strings.ReplaceAll(arg, "{}", dir)
			}
			cmd.SetArgs(args)
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the files were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

// spareFiles is a folder with files of a user.
func spareFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	locate := func(name string) string { return filepath.Join(dir, name) }
	must(os.Mkdir(locate("pictures"), 0o755))
	for name, text := range map[string]string{
		"words.txt": thousand(), "other.txt": "x" + thousand(), "pictures/words.svg": thousand(), "empty.html": "",
		"ours.html": oldPage, "theirs.html": "<!DOCTYPE html>\n<html><head><title>Mine</title></head></html>\n",
	} {
		must(os.WriteFile(locate(name), []byte(text), 0o644))
	}
	must(os.Symlink("words.txt", locate("soft")))
	must(os.Link(locate("words.txt"), locate("hard")))
	must(os.Symlink("../other.txt", locate("pictures/soft.svg")))
	must(os.Symlink("../ours.html", locate("pictures/ours.svg")))
	return dir
}

// contents is all that a folder holds.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*", "*/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				text = []byte("(a folder)")
			}
			fmt.Fprintf(&all, "%s %q\n", path, text)
		}
	}
	return all.String()
}

// opened is a file of the folder, or without a name a stream that is none.
func opened(t *testing.T, dir, name string, how int) io.ReadWriter {
	t.Helper()
	if name == "" {
		return new(bytes.Buffer)
	}
	file, err := os.OpenFile(filepath.Join(dir, name), how, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// TestCompareReplacesPages wants an empty file, a page of an earlier run and the
// pictures replaced, and everything else beside them left.
func TestCompareReplacesPages(t *testing.T) {
	run := func(context.Context, hashlab.Options) (*hashlab.Report, error) { return labReport(), nil }
	dir := t.TempDir()
	locate := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty.html": "", "old.html": oldPage, "earlier.svg": "<svg/>"} {
		if err := os.WriteFile(locate(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"empty.html", "old.html", "new.html", "new.html"} { // the last one over a real page
		if _, _, err := runCompare(context.Background(), run, "--html", locate(name), "--pictures", dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(locate(name)); err != nil || !bytes.Contains(text, []byte("A sentence.")) {
			t.Errorf("%s: %v, %.60q", name, err, text)
		}
	}
	pictures, err := filepath.Glob(locate("*.svg"))
	if err != nil || len(pictures) != 2 {
		t.Errorf("pictures %v, %v; want the earlier one and the one of the report", pictures, err)
	}
	if text, err := os.ReadFile(locate("earlier.svg")); err != nil || string(text) != "<svg/>" {
		t.Errorf("the earlier picture: %q, %v", text, err)
	}
}

// TestCompareChecksAgain puts somebody's file where the page is to go while the
// laboratory measures.
func TestCompareChecksAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	_, _, err := runCompare(context.Background(), func(context.Context, hashlab.Options) (*hashlab.Report, error) {
		return labReport(), os.WriteFile(path, []byte("mine"), 0o644)
	}, "--html", path)
	if err == nil || !strings.Contains(err.Error(), "neither empty nor a page") {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// TestCompareStandardInput wants a corpus from standard input, named so.
func TestCompareStandardInput(t *testing.T) {
	var got hashlab.Options
	cmd := (&comparison{run: func(_ context.Context, o hashlab.Options) (*hashlab.Report, error) {
		got = o
		return labReport(), nil
	}}).command()
	cmd.SetIn(strings.NewReader(thousand()))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--corpus", "-"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if len(got.Corpora) != 1 || got.Corpora[0].Name != "stdin" || len(got.Corpora[0].Keys) != 1000 || string(got.Corpora[0].Keys[999]) != "example999.com" {
		t.Errorf("corpora %v", got.Corpora)
	}
	if len(got.Flags) != 1 || got.Flags[0] != "--corpus=-" {
		t.Errorf("flags %q", got.Flags)
	}
}
