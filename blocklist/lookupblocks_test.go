package blocklist

import (
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Find with Blocks finds what blocks, whatever allows: exceptions, allow lists and
// overriding ones.
func TestFindBlocks(t *testing.T) {
	set := setWith(t, Filter{Kind: KindSized}, []plainList{
		{List{Name: "always", Type: Allow, Override: true}, []string{"a@b.example"}},
		{List{Name: "allowed", Type: Allow}, []string{"@b.example", "spammer@"}},
		{List{Name: "blocked", Action: verdict.Reject}, []string{"b.example", "!c@b.example", "spammer@", "d@e.example"}},
		{List{Name: "watched", Action: verdict.Monitor}, []string{"@b.example"}},
	}, 1<<20)
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
		found, err := set.Only(nil).Find(verdict.Header, a, FindOptions{Blocks: true, Kinds: c.kinds})
		d := Decide([]Found{found}, nil)
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
