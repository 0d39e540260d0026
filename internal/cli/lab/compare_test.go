package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/render"
)

// labReport is a report with little in it.
func labReport() *hashlab.Report {
	return &hashlab.Report{
		Manifest: hashlab.Manifest{Version: "0", Corpora: []hashlab.CorpusInfo{{Name: "keys"}}},
		Summary:  []hashlab.Finding{{Name: "x", Text: "A sentence."}},
		Speed:    []hashlab.SpeedRow{{Subject: hashlab.Subject{Name: "classic", Kind: hashlab.KindFamily}, What: "all k indices", K: 11, KeyBytes: 33, NsMedian: 1}},
	}
}

// runCompare runs "hashlab compare" with another laboratory.
func runCompare(ctx context.Context, run func(context.Context, hashlab.Options) (*hashlab.Report, error), args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := (&comparison{run: run}).command()
	cmd.SilenceErrors = true
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return out.String(), errs.String(), err
}

// TestCompareOptions wants what the flags say to reach the laboratory and the
// manifest: what decides the numbers, and nothing else.
func TestCompareOptions(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "a,b.txt")
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "Example%d.com # reason\n", i)
	}
	if err := os.WriteFile(list, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var got hashlab.Options
	out, stderr, err := runCompare(context.Background(), func(_ context.Context, o hashlab.Options) (*hashlab.Report, error) {
		got = o
		o.Progress(0.5, "half of it")
		return labReport(), nil
	}, "--family", "classic:RS,JS", "--family", "weighted:5,7", "--corpus", list, "--as-list", "--seed", "9", "--full", "--html", filepath.Join(dir, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Families, []string{"classic:RS,JS", "weighted:5,7"}) || got.Seed != 9 || !got.Full || got.Version == "" {
		t.Errorf("options %+v", got)
	}
	if want := []string{"--as-list=true", "--corpus=" + list, "--family=classic:RS,JS", "--family=weighted:5,7", "--full=true", "--seed=9"}; !slices.Equal(got.Flags, want) {
		t.Errorf("flags %q, want %q", got.Flags, want)
	}
	if len(got.Corpora) != 1 || got.Corpora[0].Name != list || len(got.Corpora[0].Keys) != 1000 || string(got.Corpora[0].Keys[7]) != "example7.com" {
		t.Errorf("corpora %v", got.Corpora)
	}
	if !strings.Contains(out, "* A sentence.") || stderr != "" {
		t.Errorf("printed %q, and %q where no terminal is", out, stderr)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "page.html")); err != nil || !bytes.Contains(page, []byte("A sentence.")) {
		t.Errorf("the page: %v", err)
	}
}

// TestCompareForms wants the form that a flag asks for.
func TestCompareForms(t *testing.T) {
	run := func(context.Context, hashlab.Options) (*hashlab.Report, error) { return labReport(), nil }
	out, _, err := runCompare(context.Background(), run, "--json")
	if r := new(hashlab.Report); err != nil || json.Unmarshal([]byte(out), r) != nil || r.Speed[0].NsMedian != 1 {
		t.Errorf("--json: %v\n%s", err, out)
	}
	out, _, err = runCompare(context.Background(), run, "--csv")
	if err != nil || !strings.HasPrefix(out, strings.Join(render.CSVHeader, ",")+"\n") {
		t.Errorf("--csv: %v\n%s", err, out)
	}
	old := t.TempDir()
	for _, pictures := range []string{old, filepath.Join(old, "new"), filepath.Join(old, "newer") + string(filepath.Separator)} {
		if _, _, err = runCompare(context.Background(), run, "--pictures", pictures); err != nil {
			t.Errorf("--pictures: %v", err)
		}
		if files, err := os.ReadDir(pictures); err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".svg") {
			t.Errorf("--pictures: %v, %v; want one SVG file", files, err)
		}
	}
}

// oldPage is the begin of a page of an earlier run.
const oldPage = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta name=\"generator\" content=\"hashlab compare\">\n"

// TestCompareInterrupted ends the context in the laboratory. What is done is to
// be printed, the exit code to be an error's, and files to be as they were.
func TestCompareInterrupted(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	if err := os.WriteFile(page, []byte(oldPage), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, _, err := runCompare(ctx, func(ctx context.Context, _ hashlab.Options) (*hashlab.Report, error) {
		cancel()
		<-ctx.Done()
		r := labReport()
		r.Interrupted = true
		return r, nil
	}, "--html", page, "--pictures", filepath.Join(dir, "pictures"))
	if err == nil || !strings.Contains(err.Error(), "interrupted: what was done is printed, and no file was written") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(out, "A sentence.") || !strings.Contains(out, "interrupted") {
		t.Errorf("printed:\n%s", out)
	}
	files, _ := os.ReadDir(dir)
	if text, err := os.ReadFile(page); string(text) != oldPage || err != nil || len(files) != 1 {
		t.Errorf("the page holds %q, %v, and the folder %v", text, err, files)
	}
}

// TestCompareChecksFirst wants mistakes told before anything is measured.
func TestCompareChecksFirst(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short, long, binary := file("short", "a\nb\n"), file("long", strings.Repeat("x", 1<<20)+"\n"), file("binary", "a\x00b\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"choose one of them", []string{"--json", "--csv"}},
		{"classic9", []string{"--family", "nonsense"}}, // of the names that there are
		{"NOSUCH", []string{"--family", "classic:NOSUCH"}},
		{"name a file of keys", []string{"--corpus", filepath.Join(dir, "missing")}},
		{"is empty", []string{"--corpus", os.DevNull}},
		{"at least 1000", []string{"--corpus", short}},
		{"line 1: longer than 1048575 bytes", []string{"--corpus", long}},
		{"binary", []string{"--corpus", binary, "--as-list"}},
		{"name one", []string{"--as-list"}},
		{"name one with --html FILE", []string{"--html", ""}},
		{"--html", []string{"--html", dir}},
		{"name a file in a folder that exists", []string{"--html", filepath.Join(dir, "no", "page.html")}},
		{"in a folder that exists", []string{"--pictures", filepath.Join(dir, "no", "where")}},
		{"name one with --pictures FOLDER", []string{"--pictures", ""}},
		{"in a folder that exists", []string{"--pictures", filepath.Join(short, "new")}},
		{"not a folder", []string{"--pictures", short}},
		{"name one with --pictures FOLDER", []string{"--pictures", ""}},
		{`"--seed" flag: use a whole number from 0 to 18446744073709551615`, []string{"--seed", "-1"}},
		{`"--seed" flag: use a whole number`, []string{"--seed", "text"}},
		{`"surplus" is too much`, []string{"surplus"}},
		{"no file to read", []string{"--corpus", ""}},
		{"--corpus - is given twice", []string{"--corpus", "-", "--corpus", "-"}},
		{"--family double is given twice", []string{"--family", "double", "--family", "digest", "--family", "double"}},
		{"--family seeded:0 is --family seeded again", []string{"--family", "seeded", "--family", "seeded:0"}},
		{"corpus stdin is empty", []string{"--corpus", "-"}},
	} {
		_, _, err := runCompare(context.Background(), func(context.Context, hashlab.Options) (*hashlab.Report, error) {
			t.Errorf("%q: measured", c.args)
			return labReport(), nil
		}, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "strconv") || strings.Contains(err.Error(), "stat :") {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("the folder holds %v, %v; want the corpora alone", files, err)
	}
}

// TestCompareFails wants the laboratory's and the output's errors.
func TestCompareFails(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	broken := errors.New("broken")
	_, _, err := runCompare(context.Background(), func(context.Context, hashlab.Options) (*hashlab.Report, error) { return nil, broken }, "--html", page)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	r, w := io.Pipe()
	r.CloseWithError(broken)
	cmd := (&comparison{run: func(context.Context, hashlab.Options) (*hashlab.Report, error) { return labReport(), nil }}).command()
	cmd.SilenceErrors = true
	cmd.SetOut(w)
	cmd.SetArgs([]string{"--html", page})
	if err := cmd.Execute(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(page); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a page: %v", err)
	}
}
