package listcompare

import (
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
)

// listOf returns a list from words: block or allow, an action, header=ACTION, override, exact,
// and stages, which are both unless named.
func listOf(words string) config.List {
	l := config.List{Type: "block", Action: "reject", Stage: []string{"envelope", "header"}, Match: "subtree"}
	var stages []string
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "block":
		case "allow", "override":
			l.Type, l.Action, l.Override = "allow", "", word == "override"
		case "envelope", "header":
			stages = append(stages, word)
		case "exact":
			l.Match = "exact"
		default:
			if action, ok := strings.CutPrefix(word, "header="); ok {
				l.HeaderAction = action
			} else {
				l.Action = word
			}
		}
	}
	if stages != nil {
		l.Stage = stages
	}
	return l
}

// blockActions are the actions of block lists: the strictest first, then monitor.
var blockActions = func() []string {
	all := verdict.Actions()[verdict.Tag:verdict.Monitor]
	slices.Reverse(all)
	return append(all, verdict.Monitor.String())
}()

// TestOverlapTypes finds user@x.example in one list and x.example in another, of all kinds.
func TestOverlapTypes(t *testing.T) {
	kinds := append([]string{"override", "allow"}, blockActions...)
	covers := map[string]string{"override": "override allow", "allow": "allow"} // by list: the lists whose entries it covers
	for i, action := range blockActions {
		covers[action] = strings.Join(blockActions[i:], " ")
	}
	type pair struct{ name, by string }
	want := map[pair]bool{}
	for _, by := range kinds {
		for _, name := range kinds {
			for _, stages := range []string{"", " envelope", " header"} {
				for _, all := range []string{"", " envelope", " header"} {
					yes := strings.Contains(" "+covers[by]+" ", " "+name+" ") && (all == "" || all == stages)
					want[pair{name + stages, by + all}] = yes
				}
			}
		}
	}
	for p, yes := range map[pair]bool{
		{"reject header=tag", "tag"}:               false, // at the envelope
		{"tag", "reject header=tag"}:               true,
		{"tag", "tag header=monitor"}:              false,
		{"reject envelope", "reject header=tag"}:   true,
		{"reject header", "reject header=monitor"}: false,
		{"reject", "reject exact"}:                 true, // x.example is the domain itself
	} {
		want[p] = yes
	}
	for p, yes := range want {
		if got := overlapOf(t, p.name, "user@x.example", p.by, "x.example"); got != yes {
			t.Errorf("an entry of a list %q covered by a list %q: %t, want %t", p.name, p.by, got, yes)
		}
	}
}

// TestOverlapMatch has broader entries that do not match, or that an exception cancels.
func TestOverlapMatch(t *testing.T) {
	for _, c := range []struct {
		entry, by, broader string
		want               bool
	}{
		{"user@sub.x.example", "reject", "x.example", true},
		{"user@sub.x.example", "reject exact", "x.example", false},
		{"user@sub.x.example", "reject exact", ".x.example", true},
		{"sub.x.example", "allow", "x.example", false}, // a block list's entry
		{"user@x.example", "reject", "x.example !user@x.example", false},
		{"user@x.example", "reject", "x.example !@x.example", false},
		{"user@x.example", "reject", "x.example !other@x.example", true},
		{"user@sub.x.example", "reject", "!x.example sub.x.example", true},
		{"user@x.example", "reject", "user@", true},
	} {
		if got := overlapOf(t, "reject", c.entry, c.by, c.broader); got != c.want {
			t.Errorf("%s covered by %q of a list %q: %t, want %t", c.entry, c.broader, c.by, got, c.want)
		}
	}
}

// overlapOf reports whether overlap finds that the second list covers the entry of the first.
func overlapOf(t *testing.T, name, entry, by, broader string) bool {
	t.Helper()
	key := listfiles.NewKey()
	var lists []*listfiles.List
	p := NewOverlap(nil, key)
	for i, words := range []string{name, by} {
		l := &listfiles.List{List: listOf(words)}
		l.Name = []string{"of", "by"}[i]
		l.Options = listfile.Options{Allow: l.Type == "allow", Exact: l.Match == "exact"}
		lists = append(lists, l)
	}
	p.lists = lists
	for i, text := range []string{entry, broader} {
		b := listfiles.NewBuilder(t.Context(), key)
		if _, err := b.Add(strings.NewReader(strings.ReplaceAll(text, " ", "\n")+"\n"), lists[i].Options); err != nil {
			t.Fatal(err)
		}
		s, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		p.Add(s)
	}
	if err := p.Compare(t.Context(), func(float64) {}); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Report("").Within {
		if w.List == "of" && w.By == "by" {
			return true
		}
	}
	return false
}
