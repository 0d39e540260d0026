package listedit

import (
	"testing"

	"spamgate/blocklist/listfile"
)

// An entry that is given an end ends, though a line further down says nothing of
// it.
func TestAddEndOfRepeated(t *testing.T) {
	n := listfile.Line{Text: "a.example", Reason: "r", Until: "2099-12-31"}
	for _, test := range []struct{ list, want, what string }{
		{"a.example # until=2099-12-31 r\na.example # for ever\nb.example\n", "a.example  # until=2099-12-31 r\nb.example\n", Updated},
		{"a.example # until=2099-12-31 r\na.example # until=2100-01-31\n", "a.example  # until=2099-12-31 r\n", Updated},
		{"a.example # until=2099-12-31 r\na.example # until=2098-01-31\n", "a.example # until=2099-12-31 r\na.example # until=2098-01-31\n", Present},
	} {
		got, additions := add(t, test.list, listfile.Options{}, n)
		if got != test.want || additions[0].What != test.what {
			t.Errorf("%q: %s, %q; want %s, %q", test.list, additions[0].What, got, test.what, test.want)
		}
	}
}
