package listfile

import (
	"errors"
	"strings"
	"testing"
)

func TestSides(t *testing.T) {
	for _, row := range rows(t, "sides.tsv", 7) {
		o := flags(row[0])
		o.PerRecipient = true
		entries, problems, _ := mustRead(t, row[1], o)
		if len(problems) > 0 {
			t.Errorf("%q: %v", row[1], problems[0])
			continue
		}
		var want []Entry
		if row[3] != "" {
			kind, exception := strings.CutPrefix(row[3], "!")
			want = []Entry{{For: row[2], Key: row[4], Kind: kindOf(t, kind), Exception: exception, Line: 1, Reason: row[5], Note: row[6]}}
		}
		for i := range entries {
			if strings.Contains(row[1], " until=") && entries[i].Until == 0 {
				t.Errorf("%q: no expiry", row[1])
			}
			entries[i].Until = 0
			checkEntry(t, entries[i])
		}
		if len(entries) != len(want) || len(want) == 1 && entries[0] != want[0] {
			t.Errorf("%s %q\n got %+v\nwant %+v", row[0], row[1], entries, want)
		}
	}
}

// TestSidesFormat: the other formats have no recipients, and say so.
func TestSidesFormat(t *testing.T) {
	for _, f := range Formats {
		_, err := read(strings.NewReader("ann@example.net news.example\n"), Options{Format: f, PerRecipient: true}, func(Entry) error { return nil }, nil)
		if f == Plain && err != nil || f != Plain && (!errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "only a plain list has lines for recipients")) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestWriteSides: a plain list keeps the recipients, and no other format makes entries for
// everybody of them.
func TestWriteSides(t *testing.T) {
	const text = `"ann lee"@example.net @news.example # until=2999-12-31T00:00:00Z why ## note
#x@example.net <>
.example.net !.news.example
sales@ "a*b"@news.example
*.example.net news@
`
	for _, exact := range []bool{false, true} {
		var entries []Entry
		for e, err := range NewReader(strings.NewReader(strings.Replace(text, "#x@", `"#x"@`, 1)), Options{PerRecipient: true, Exact: exact}).All() {
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		if len(entries) != 5 {
			t.Fatalf("%+v", entries)
		}
		for _, f := range Writable {
			var b strings.Builder
			skipped := 0
			n, err := Write(&b, listOf(entries), WriteOptions{Format: f, Exact: exact}, func(Problem) { skipped++ })
			if err != nil {
				t.Fatal(err)
			}
			if f != Plain {
				if n != 0 || skipped != len(entries) || strings.Contains(b.String(), "news") {
					t.Errorf("%s: %d written, %d skipped:\n%s", f, n, skipped, b.String())
				}
				continue
			}
			again, problems, _ := mustRead(t, b.String(), Options{PerRecipient: true, Exact: exact})
			if len(problems) > 0 || len(again) != len(entries) {
				t.Fatalf("%q: %+v, %v", b.String(), again, problems)
			}
			for i := range again {
				if again[i].Line = entries[i].Line; again[i] != entries[i] {
					t.Errorf("exact %v: wrote %+v, read %+v", exact, entries[i], again[i])
				}
			}
		}
	}
}

// FuzzSides holds the quick reading of a line with two sides against the slow one, and each
// side against an entry alone.
func FuzzSides(f *testing.F) {
	for _, row := range rows(f, "sides.tsv", 7) {
		f.Add(row[1], strings.Contains(row[0], "a"), strings.Contains(row[0], "e"), strings.Contains(row[0], "p"))
	}
	for _, row := range rows(f, "malformed.tsv", 3) {
		f.Add(row[1], false, false, true)
		f.Add("ann@example.net "+row[1], false, true, false)
		f.Add(row[1]+"\tnews.example", true, false, false)
	}
	f.Fuzz(func(t *testing.T, s string, allow, exact, suffixes bool) {
		options := Options{Allow: allow, Exact: exact, AllowPublicSuffix: suffixes}
		o := options
		o.PerRecipient = true
		want, err := parseSides(s, o)
		if got, ok := quickSides(s, &o); ok && (err != nil || got != want) {
			t.Errorf("%q: %+v, want %+v, %v", s, got, want, err)
		}
		if err != nil {
			if p := explainSides(s, o, err); p.What == "" {
				t.Errorf("%q: %+v", s, p)
			}
			return
		}
		recipient, entry := cutPattern(trim(s))
		r, err := parseEntry(recipient, options)
		if err != nil || r.Key != want.For || r.Exception || want.For == "<>" {
			t.Errorf("%q: recipient %+v, %v; got %+v", s, r, err, want)
		}
		e, err := parseEntry(entry, options)
		e.For = want.For
		if err != nil || e != want {
			t.Errorf("%q: entry %+v, %v; got %+v", s, e, err, want)
		}
		checkEntry(t, want)
	})
}
