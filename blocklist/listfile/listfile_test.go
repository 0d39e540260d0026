package listfile

import (
	"encoding/hex"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
)

var hexByte = regexp.MustCompile(`\{[0-9a-f]{2}\}`)

// rows reads a testdata file: tab-separated columns, "# " comments, {hh} a byte
// in the second column.
func rows(t testing.TB, file string, columns int) [][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != columns {
			t.Fatalf("%s: %d columns in %q, want %d", file, len(row), line, columns)
		}
		row[1] = unhex(row[1])
		out = append(out, row)
	}
	return out
}

// unhex replaces {hh} by that byte.
func unhex(s string) string {
	return hexByte.ReplaceAllStringFunc(s, func(h string) string {
		b, _ := hex.DecodeString(h[1:3])
		return string(b)
	})
}

// flags reads the first column of a testdata file.
func flags(s string) Options {
	return Options{
		Allow:             strings.Contains(s, "a"),
		Exact:             strings.Contains(s, "e"),
		AllowPublicSuffix: strings.Contains(s, "p"),
		PerRecipient:      strings.Contains(s, "r"),
	}
}

// read reads a list with a Reader, and calls entry and problem, which may be nil,
// for what it yields. It ends at an error of entry.
func read(r io.Reader, o Options, entry func(Entry) error, problem func(Problem)) (Result, error) {
	in := NewReader(r, o)
	in.Problem = problem
	var failed error
	for e, err := range in.All() {
		if err == nil {
			err = entry(e)
		}
		if failed = err; err != nil {
			break
		}
	}
	return in.Result(), failed
}

// mustRead reads a list and returns its entries, problems and counts.
func mustRead(t testing.TB, text string, o Options) ([]Entry, []Problem, Result) {
	t.Helper()
	var entries []Entry
	var problems []Problem
	res, err := read(strings.NewReader(text), o,
		func(e Entry) error { entries = append(entries, e); return nil },
		func(p Problem) { problems = append(problems, p) })
	if err != nil {
		t.Errorf("read(%.100q): %v", text, err)
	}
	if res.Entries != len(entries) || res.Invalid+res.Unsupported != len(problems) {
		t.Errorf("read(%.100q) counts %+v, called back with %d and %d", text, res, len(entries), len(problems))
	}
	sameInParallel(t, text, o, found{entries, problems, res, err})
	return entries, problems, res
}

func TestEntries(t *testing.T) {
	for _, row := range rows(t, "entries.tsv", 6) {
		entries, problems, _ := mustRead(t, row[1], flags(row[0]))
		if len(problems) > 0 {
			t.Errorf("%q: %v", row[1], problems[0])
			continue
		}
		var want []Entry
		if row[2] != "" {
			kind, exception := strings.CutPrefix(row[2], "!")
			want = []Entry{{Key: row[3], Kind: kindOf(t, kind), Exception: exception, Line: 1, Reason: row[4], Note: row[5]}}
		}
		for i := range entries {
			if strings.Contains(row[1], " until=") && entries[i].Until == 0 {
				t.Errorf("%q: no expiry", row[1])
			}
			entries[i].Until = 0 // see TestUntil
		}
		if len(entries) != len(want) || len(want) == 1 && entries[0] != want[0] {
			t.Errorf("%s %q\n got %+v\nwant %+v", row[0], row[1], entries, want)
		}
	}
}

func kindOf(t *testing.T, name string) sender.Kind {
	t.Helper()
	for k := range sender.Kind(8) {
		if k.String() == name {
			return k
		}
	}
	t.Fatalf("no kind is called %q", name)
	return 0
}

func TestMalformed(t *testing.T) {
	for _, row := range rows(t, "malformed.tsv", 3) {
		o := flags(row[0])
		entries, problems, _ := mustRead(t, row[1], o)
		if len(entries) > 0 || len(problems) != 1 {
			t.Errorf("%s %q: entries %+v, problems %v, want one problem", row[0], row[1], entries, problems)
			continue
		}
		p := problems[0]
		got := p.What
		if p.Hint != "" {
			got += "; " + p.Hint
		}
		if got != row[2] || p.Line != 1 {
			t.Errorf("%s %q, line %d\n got %s\nwant %s", row[0], row[1], p.Line, got, row[2])
		}
		// What a hint says to write had better be an entry.
		if entry, ok := strings.CutPrefix(p.Hint, "write "); ok && strings.Count(entry, " ") == strings.Count(row[0], "r") {
			if _, err := ParseEntry(entry, o); err != nil {
				t.Errorf("%q: hint %q: %v", row[1], p.Hint, err)
			}
		}
	}
}

// TestMatches looks addresses up as a Set does: an entry matches if its key is
// among the address's candidates.
func TestMatches(t *testing.T) {
	for _, row := range rows(t, "matches.tsv", 4) {
		e, err := ParseEntry(row[1], flags(row[0]))
		if err != nil {
			t.Error(err)
			continue
		}
		a, err := sender.Parse(row[2])
		if err != nil {
			t.Errorf("%q: %v", row[2], err)
			continue
		}
		if got := matches(e, a); got != (row[3] == "yes") {
			t.Errorf("%s entry %q, address %q: %v", row[0], row[1], row[2], got)
		}
	}
}

func matches(e Entry, a sender.Address) bool {
	w := a.Walk(nil)
	for k, ok := w.Next(); ok; k, ok = w.Next() {
		if k.Kind == e.Kind && string(k.Text) == e.Key {
			return true
		}
	}
	return false
}

func TestParseEntryError(t *testing.T) {
	long := strings.Repeat("é", 100) + "\x01"
	for _, c := range []struct{ text, want string }{
		{"com ", `"com": a single label covers every domain below it; write com@ for that local part at any domain, @com for that domain alone, or set allow_public_suffix = true`},
		{"", `"": there is no entry`},
		{"a@b\x07", `"a@b�": control character U+0007`},
		{long, `"` + strings.Repeat("é", 58) + `…": control character U+0001`},
	} {
		_, err := ParseEntry(c.text, Options{})
		var p Problem
		if !errors.As(err, &p) || err.Error() != c.want {
			t.Errorf("ParseEntry(%q)\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	if got, want := (Problem{Line: 3, Text: "x", What: "wrong"}).String(), `line 3: "x": wrong`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSuffixes: which domains are public suffixes, whatever form of entry names
// them.
func TestSuffixes(t *testing.T) {
	for d, suffix := range map[string]bool{
		"com": true, "example": true, "co.uk": true, "com.ar": true, "k12.ma.us": true, "pvt.k12.ma.us": true,
		"foo.ck": true, "sch.uk": true, "kawasaki.jp": true, "foo.kawasaki.jp": true, "xn--55qx5d.cn": true,
		"example.com": false, "example.co.uk": false, "www.ck": false, "city.kawasaki.jp": false,
		"foo.sch.uk": true, "bar.foo.sch.uk": false, "github.io": false, "blogspot.com": false,
		"a.b.c.d.e.example.com": false,
	} {
		for _, form := range []string{d, "." + d, "*." + d} {
			if _, err := ParseEntry(form, Options{}); (err != nil) != suffix {
				t.Errorf("%s: %v", form, err)
			}
			if _, err := ParseEntry(form, Options{AllowPublicSuffix: true}); err != nil {
				t.Errorf("%s, suffixes allowed: %v", form, err)
			}
		}
		for _, form := range []string{"@" + d, "*@" + d, "user@" + d} {
			if _, err := ParseEntry(form, Options{}); err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
}
