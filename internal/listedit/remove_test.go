package listedit

import (
	"errors"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
)

// TestRemove removes entries, and exceptions from them, which are two things. A list
// from which all is removed is not left with 0 bytes: those would look like a loss.
func TestRemove(t *testing.T) {
	const both = "a@example.com # spam\n!a@example.com # friend\n"
	for _, tt := range []struct {
		name, old, remove string
		want              string // "": nothing to change
	}{
		{"the entry alone", both, "a@example.com", "!a@example.com # friend\n"},
		{"the exception alone", both, "!a@example.com", "a@example.com # spam\n"},
		{"an entry that is an exception only", "!a@example.com\n", "a@example.com", ""},
		{"an exception that is an entry only", "a@example.com\n", "!a@example.com", ""},
		{"however it is spelled, and each of its lines", "A@Example.COM.\nb@example.com\na@example.com # again\n", "a@example.com", "b@example.com\n"},
		{"not those that end alike", "aa@example.com\na@example.com.example\n", "a@example.com", ""},
		{"in a first line with a mark", "\ufeffa@example.com\nb@example.com\n", "a@example.com", "\ufeffb@example.com\n"},
		{"the last one", "a@example.com\n", "a@example.com", NoEntries + "\n"},
		{"the last one, without a line end", "a@example.com", "a@example.com", NoEntries + "\n"},
		{"the last one beside a comment", "# ours\na@example.com\n", "a@example.com", "# ours\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entry, err := listfile.ParseEntry(tt.remove, listfile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			_, err = Remove(strings.NewReader(tt.old), &out, listfile.Options{}, []listfile.Entry{entry})
			if tt.want == "" {
				if !errors.Is(err, ErrUnchanged) || out.Len() > 0 {
					t.Errorf("%q, %v; want nothing changed", out.String(), err)
				}
				return
			}
			if err != nil || out.String() != tt.want {
				t.Errorf("%q, %v; want %q", out.String(), err, tt.want)
			}
		})
	}
}

// BenchmarkFind finds an entry among a million lines.
func BenchmarkFind(b *testing.B) {
	list := strings.Repeat("mail.some-name.example\nuser@another-name.example\n", 500_000)
	e, err := listfile.ParseEntry("mail.wanted.example", listfile.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		if _, err := Find(strings.NewReader(list), listfile.Options{}, []listfile.Entry{e}); err != nil {
			b.Fatal(err)
		}
	}
}
