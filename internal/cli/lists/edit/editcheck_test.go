package edit

import (
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
)

// TestEditedEntries: an edit is told by entry, whatever stays around it.
func TestEditedEntries(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{"a.example\nb.example\nc.example\n", "a.example\nb.example # why\nc.example\n", []string{"updated b.example"}},
		{"a.example\nb.example\n", "b.example\na.example\n", nil},
		{"a.example\nc.example\n", "a.example\nx.example # until=2098-12-31 soon\nc.example\n", []string{"added x.example until 2099-01-01T00:00:00Z"}},
		{"x.a.example\n", "a.example\n", []string{"added a.example", "removed x.a.example"}}, // the one ends as the other does
		{"a.example\n", "x.a.example\n", []string{"added x.a.example", "removed a.example"}},
		{"b.example\na.example\n", "# no entries\n", []string{"removed a.example", "removed b.example"}},
		{"# no entries\n", "a.example\n", []string{"added a.example"}},
		{"a.example\r\nb.example\r\n", "b.example\r\n", []string{"removed a.example"}},
		{"a.example\n", "a.example\n# end\n", nil},
		{"Spam.Example\n", "spam.example\n", []string{"updated spam.example"}},
	} {
		got, err := editedEntries([]byte(c.before), []byte(c.after), listfile.Options{})
		if err != nil || !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%q to %q: %q, %v; want %q", c.before, c.after, strings.Join(got, ", "), err, c.want)
		}
	}
}
