package listfile

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"spamgate/blocklist/sender"
)

// asEntry writes a key as an entry of a list that is not exact. Only a local
// part that would read as something else needs quotes: "#a"@, "!a"@, "a*"@.
func asEntry(key string) string {
	at := strings.LastIndexByte(key, '@')
	if at <= 0 || key[0] == '"' {
		return key
	}
	if key[0] == '#' || key[0] == '!' || strings.Contains(key[:at], "*") {
		return `"` + key[:at] + `"` + key[at:]
	}
	return key
}

// checkEntry holds what is true of every valid entry: written as an entry
// again, its key is a fixed point, and its comment is safe to print.
func checkEntry(t *testing.T, e Entry) {
	t.Helper()
	again, err := ParseEntry(asEntry(e.Key), Options{AllowPublicSuffix: true})
	if err != nil || again.Key != e.Key || again.Kind != e.Kind {
		t.Errorf("key %q of kind %v is no fixed point: %+v, %v", e.Key, e.Kind, again, err)
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
		res, err := Read(strings.NewReader(text), o, func(e Entry) error {
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
		if err == nil && (res.Entries != entries || res.Invalid != invalid || res.Lines < lastLine) {
			t.Errorf("%+v, called back with %d and %d up to line %d", res, entries, invalid, lastLine)
		}
		if nul := strings.Contains(text, "\x00"); nul && err == nil {
			t.Error("a NUL byte was read")
		}
	})
}
