package listfile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew; read them then")

// sampleNow is when the samples are read.
var sampleNow = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Unix()

// samples returns the files of testdata/samples: format[-what].ending.
func samples(t testing.TB) map[string]Format {
	t.Helper()
	files, err := filepath.Glob("testdata/samples/*.*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Format{}
	for _, f := range files {
		if strings.HasSuffix(f, ".golden") {
			continue
		}
		name, _, _ := strings.Cut(filepath.Base(f), ".")
		name, _, _ = strings.Cut(name, "-")
		found[f] = Format(name)
		if !Format(name).Known() {
			t.Fatalf("%s: no format is called %q", f, name)
		}
	}
	return found
}

// TestSamples compares what is read of each sample with what is expected: all
// entries, all problems, the counts and the notes.
func TestSamples(t *testing.T) {
	for file, format := range samples(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Format: format, Now: sampleNow, Allow: strings.Contains(file, "-allow."), Discard: strings.Contains(file, "-discard.")}
		got := readOnce(bytes.NewReader(text), o)
		if got.err != nil {
			t.Errorf("%s: %v", file, got.err)
		}
		sameInParallel(t, string(text), o, got)
		for _, e := range got.entries {
			checkEntry(t, e)
		}
		compareGolden(t, file+".golden", outcome(got))
	}
}

// TestHostile reads texts that are wrong or odd, a line of the file each, and
// compares what becomes of them.
func TestHostile(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		format := Format(strings.TrimSuffix(filepath.Base(file), ".txt"))
		var all strings.Builder
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			o := Options{Format: format, Now: sampleNow}
			got := readOnce(strings.NewReader(unhex(line)), o)
			sameInParallel(t, unhex(line), o, got)
			for _, e := range got.entries {
				checkEntry(t, e)
			}
			fmt.Fprintf(&all, "== %s\n%s", line, outcome(got))
		}
		compareGolden(t, file+".golden", all.String())
	}
}

// outcome writes what a text held for a golden file.
func outcome(f found) string {
	var b strings.Builder
	for _, e := range f.entries {
		fmt.Fprintln(&b, describe(e))
	}
	for _, p := range f.problems {
		kind := "invalid"
		if p.Unsupported {
			kind = "unsupported"
		}
		fmt.Fprintf(&b, "%s %s\n", kind, p)
	}
	for _, n := range f.result.Notes {
		fmt.Fprintf(&b, "note %s\n", n)
	}
	if f.err != nil {
		fmt.Fprintf(&b, "error %v\n", f.err)
		return b.String()
	}
	r := f.result
	fmt.Fprintf(&b, "%d entries, %d invalid, %d unsupported, %d expired, %d lines, %s\n",
		r.Entries, r.Invalid, r.Unsupported, r.Expired, r.Lines, r.Format)
	return b.String()
}

// describe writes an entry for a golden file.
func describe(e Entry) string {
	words := []string{fmt.Sprintf("line %d:", e.Line), e.Kind.String(), AsEntry(e)}
	if e.Defer {
		words = append(words, "defer")
	}
	if e.Until != 0 {
		words = append(words, "until "+FormatUntil(e.Until))
	}
	if e.Reason != "" {
		words = append(words, fmt.Sprintf("reason %q", e.Reason))
	}
	if e.Note != "" {
		words = append(words, fmt.Sprintf("note %q", e.Note))
	}
	return strings.Join(words, " ")
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("%s\n got:\n%s\nwant:\n%s", file, got, want)
	}
}
