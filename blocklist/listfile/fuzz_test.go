package listfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"spamgate/blocklist/sender"
)

// checkEntry holds what is true of every valid entry: written as an entry
// again, its key is a fixed point, and its comment is safe to print.
func checkEntry(t *testing.T, e Entry) {
	t.Helper()
	again, err := ParseEntry(AsEntry(Entry{For: e.For, Key: e.Key}), Options{AllowPublicSuffix: true, PerRecipient: e.For != ""})
	if err != nil || again.Key != e.Key || again.Kind != e.Kind || again.For != e.For {
		t.Errorf("key %q of kind %v for %q is no fixed point: %+v, %v", e.Key, e.Kind, e.For, again, err)
	}
	if strings.Contains(e.For+e.Key, "\t") {
		t.Errorf("a tab in key %q for %q", e.Key, e.For)
	}
	if e.Kind == sender.KindAddress {
		if a, err := sender.Parse(e.Key); err != nil || !matches(e, a) {
			t.Errorf("entry %q does not match itself: %v", e.Key, err)
		}
	}
	for _, s := range []string{e.Reason, e.Note} {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("key %q has an unprintable comment %q", e.Key, s)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, row := range rows(f, "entries.tsv", 6) {
		f.Add(row[1]+"\nexample.com # one", strings.Contains(row[0], "a"), strings.Contains(row[0], "e"))
	}
	for _, row := range rows(f, "malformed.tsv", 3) {
		f.Add(row[1]+"\r\n\xEF\xBB\xBFexample.com ## two\r\n", strings.Contains(row[0], "a"), strings.Contains(row[0], "e"))
	}
	f.Fuzz(func(t *testing.T, text string, allow, exact bool) {
		o := Options{Allow: allow, Exact: exact}
		lastLine := 0
		inOrder := func(line int) {
			if line <= lastLine {
				t.Errorf("line %d after line %d", line, lastLine)
			}
			lastLine = line
		}
		entries, invalid := 0, 0
		res, err := read(strings.NewReader(text), o, func(e Entry) error {
			entries++
			inOrder(e.Line)
			checkEntry(t, e)
			if allow && e.Exception {
				t.Errorf("an exception in an allow list: %+v", e)
			}
			return nil
		}, func(p Problem) {
			invalid++
			inOrder(p.Line)
			if p.What == "" || len(p.Text) > maxText || !utf8.ValidString(p.Text) || strings.ContainsFunc(p.Text, unicode.IsControl) {
				t.Errorf("%+v", p)
			}
		})
		if err == nil && (res.Entries != entries || res.Invalid+res.Unsupported != invalid || res.Lines < lastLine) {
			t.Errorf("%+v, called back with %d and %d up to line %d", res, entries, invalid, lastLine)
		}
		if nul := strings.Contains(text, "\x00"); nul && err == nil {
			t.Error("a NUL byte was read")
		}
	})
}

// FuzzFormats reads a text in every format: nothing panics, several workers read
// the same as one, and every entry is a fixed point.
func FuzzFormats(f *testing.F) {
	for file, format := range samples(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), uint8(slices.Index(Formats, format)), "", false, false)
		f.Add(string(text), uint8(0), "", false, false)
	}
	hostile, err := filepath.Glob("testdata/hostile/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range hostile {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		format := Format(strings.TrimSuffix(filepath.Base(file), ".txt"))
		f.Add(unhex(string(text)), uint8(slices.Index(Formats, format)), "2", true, false)
		for line := range strings.Lines(string(text)) {
			f.Add(unhex(strings.TrimSuffix(line, "\n")), uint8(slices.Index(Formats, format)), "domain", false, true)
		}
	}
	f.Fuzz(func(t *testing.T, text string, format uint8, column string, allow, exact bool) {
		if len(text) > 2*MaxLine {
			return // more takes longer and finds no more
		}
		o := Options{
			Format: Formats[int(format)%len(Formats)], Column: column,
			Allow: allow, Exact: exact, Now: sampleNow, MaxBytes: 1 << 20,
		}
		got := readOnce(strings.NewReader(text), o)
		checkFound(t, o, got)
		sameInParallel(t, text, o, got)
		if got.err == nil {
			writeBack(t, got.entries)
		}
	})
}

// checkFound holds what is true of whatever was read.
func checkFound(t *testing.T, o Options, f found) {
	line := 0
	for _, e := range f.entries {
		checkEntry(t, e)
		if o.Allow && e.Exception {
			t.Errorf("an exception in an allow list: %+v", e)
		}
		follows := f.result.Format == Adblock && e.Exception // from an exception
		if e.Line < max(1, line) && !follows || f.err == nil && e.Line > f.result.Lines {
			t.Errorf("line %d after line %d of %d", e.Line, line, f.result.Lines)
		}
		if !follows {
			line = e.Line
		}
	}
	line = 0
	for _, p := range f.problems {
		if p.What == "" || len(p.Text) > maxText || !utf8.ValidString(p.String()) || strings.ContainsFunc(p.String(), unicode.IsControl) {
			t.Errorf("%+v", p)
		}
		if p.Line < max(1, line) {
			t.Errorf("a problem in line %d after one in line %d", p.Line, line)
		}
		line = p.Line
	}
	if r := f.result; r.Entries != len(f.entries) || r.Invalid+r.Unsupported != len(f.problems) {
		t.Errorf("%+v, called back with %d and %d", r, len(f.entries), len(f.problems))
	}
}

// writeBack holds Write against Read.
func writeBack(t *testing.T, entries []Entry) {
	list := listOf(entries)
	for _, o := range allForms() {
		_, left, back := writeList(t, list, o)
		checkDecisions(t, o, list, listOf(back.entries), len(left))
	}
}

// FuzzQuick holds the quick reading of an entry against the slow one.
func FuzzQuick(f *testing.F) {
	for _, file := range []string{"entries.tsv", "malformed.tsv", "matches.tsv"} {
		for _, row := range rows(f, file, map[string]int{"entries.tsv": 6, "malformed.tsv": 3, "matches.tsv": 4}[file]) {
			f.Add(row[1], strings.Contains(row[0], "e"), strings.Contains(row[0], "p"))
		}
	}
	f.Fuzz(func(t *testing.T, s string, exact, suffixes bool) {
		o := Options{Exact: exact, AllowPublicSuffix: suffixes}
		got, ok := quickEntry(s, &o)
		want, err := parseEntry(s, o)
		if ok && (err != nil || got != want) {
			t.Errorf("%q: %+v, want %+v, %v", s, got, want, err)
		}
	})
}
