package blocklist

import (
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// LookupBlocks finds what blocks, whatever allows: exceptions, allow lists and
// overriding ones.
func TestLookupBlocks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) []string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{path}
	}
	set, _, err := Build(t.Context(), Config{
		Filter: Filter{Kind: KindSized},
		Lists: []List{
			{Name: "always", Type: Allow, Override: true, Paths: write("always", "a@b.example\n")},
			{Name: "allowed", Type: Allow, Paths: write("allowed", "@b.example\nspammer@\n")},
			{Name: "blocked", Action: verdict.Reject, Paths: write("blocked", "b.example\n!c@b.example\nspammer@\nd@e.example\n")},
			{Name: "watched", Action: verdict.Monitor, Paths: write("watched", "@b.example\n")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	named := sender.KindSet(0).With(sender.KindAddress).With(sender.KindLocal)
	for _, c := range []struct {
		address string
		kinds   sender.KindSet
		want    string // the entry
	}{
		{"a@b.example", sender.AllKinds, "b.example"},
		{"c@b.example", sender.AllKinds, "b.example"},
		{"c@b.example", named, ""},
		{"spammer@b.example", sender.AllKinds, "b.example"},
		{"spammer@b.example", named, "spammer@"},
		{"d@e.example", named, "d@e.example"},
		{"x@e.example", sender.AllKinds, ""},
	} {
		a, err := sender.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		d, err := set.Only(nil).LookupBlocks(verdict.Header, a, c.kinds)
		if err != nil {
			t.Fatal(err)
		}
		if d.Match.Entry != c.want || (d.Action == verdict.Reject) != (c.want != "") || d.ClearsMessage {
			t.Errorf("%s: %+v, want the entry %q", c.address, d, c.want)
		}
		if c.address == "c@b.example" && c.kinds == sender.AllKinds && len(d.Monitored) != 1 {
			t.Errorf("%s: %+v, want the list that observes", c.address, d)
		}
	}
}
