package blocklist

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// randomChange returns a change of one of the lists, and the lists with it.
func randomChange(t *testing.T, r *rand.Rand, lists []plainList) (Change, []plainList) {
	t.Helper()
	i := r.IntN(len(lists))
	l := lists[i]
	line, _ := randomText(r)
	if l.PerRecipient {
		to, _ := randomText(r)
		line = strings.Replace(to, "<>", "a@", 1) + " " + line
	}
	remove := r.IntN(2) == 0
	if remove && len(l.Entries) > 0 && r.IntN(4) > 0 {
		line = l.Entries[r.IntN(len(l.Entries))]
	}
	if !remove && l.Type == Block && r.IntN(3) == 0 {
		pos := strings.LastIndexByte(line, ' ') + 1
		line = line[:pos] + "!" + line[pos:]
	}
	o := listfile.Options{AllowPublicSuffix: true, PerRecipient: l.PerRecipient}
	parse := func(line string) listfile.Entry {
		e, err := listfile.ParseEntry(line, o)
		must(t, err)
		return e
	}
	e := parse(line)
	changed := slices.Clone(lists)
	changed[i].Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(other string) bool {
		held := parse(other)
		return held.Key == e.Key && held.For == e.For
	})
	if !remove {
		changed[i].Entries = append(changed[i].Entries, line)
	}
	return Change{List: l.Name, Entry: e, Remove: remove}, changed
}

// TestWithAgainstSet: a View with changes decides as a Set of the changed lists does, for all
// lists and for some, with and without recipients, and in every kind of filter.
func TestWithAgainstSet(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 9))
	unlike := 0
	for n := range unlessShort(120, 40) {
		lists := randomLists(r)
		for i := range lists {
			if lists[i].PerRecipient = r.IntN(4) == 0; !lists[i].PerRecipient {
				continue
			}
			for k, entry := range lists[i].Entries {
				to, _ := randomText(r)
				lists[i].Entries[k] = strings.Replace(to, "<>", "a@", 1) + " " + entry
			}
		}
		filter := []Filter{{}, {Kind: KindFuse}, {Kind: KindSized}}[n%3]
		set := setWith(t, filter, lists, 512)
		_, names := subset(r, lists)
		var changes []Change
		for range 1 + r.IntN(3) {
			var c Change
			c, lists = randomChange(t, r, lists)
			changes = append(changes, c)
		}
		want := setWith(t, filter, lists, 512)
		for _, names := range [][]string{nil, names} {
			changed, err := set.Only(nil).With(changes...)
			must(t, err)
			changed = changed.Only(names)
			for range 30 {
				_, address := randomText(r)
				_, recipient := randomText(r)
				stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
				got := decisionFor(t, changed, stage, address, recipient)
				if want := decisionFor(t, want.Only(names), stage, address, recipient); got != want {
					t.Fatalf("%s %s for %s in %q:\ngot  %s\nwant %s\nchanges %+v\nto %+v", stage, address, recipient, names, got, want, changes, lists)
				}
				if got != decisionFor(t, set.Only(names), stage, address, recipient) {
					unlike++
				}
			}
		}
		if set.Lookups() != want.Lookups() && n == 0 {
			t.Errorf("%d lookups were counted, of the changed lists %d", set.Lookups(), want.Lookups())
		}
	}
	if unlike == 0 {
		t.Error("no change ever counted: the test tests less than it should")
	}
}

// decisionFor is the decision about a sender for a recipient, by Find and by Trace, which must
// agree.
func decisionFor(t *testing.T, v *View, stage verdict.Stage, address, recipient string) string {
	t.Helper()
	keys, err := v.RecipientKeys(parse(t, recipient))
	must(t, err)
	o := FindOptions{For: keys}
	found, err := v.Find(stage, parse(t, address), o)
	must(t, err)
	d := Decide([]Found{found}, nil)
	traced, _, err := v.Trace(stage, parse(t, address), o)
	must(t, err)
	if !reflect.DeepEqual(d, traced.Verdict) {
		t.Fatalf("%s %s for %s: found %+v\ntraced %+v", stage, address, recipient, d, traced.Verdict)
	}
	return describeDecision(d)
}

// TestWith: what a match of an entry that is not in its list yet says, and which changes there
// cannot be.
func TestWith(t *testing.T) {
	personal := perRecipientList(t, "personal", "ann@example.net news.example")
	set := build(t, fast(blockList("blocked", write(t, inDir(t, "blocked"), "bulk.example\n")), personal))
	e := listfile.Entry{Key: "x@bulk.example", Kind: sender.KindAddress, Reason: "asked for", Defer: true}
	v, err := set.Only(nil).With(Change{List: "blocked", Entry: e})
	must(t, err)
	d := lookup(t, v, verdict.Envelope, parse(t, "x@bulk.example"))
	if m := d.Match; d.Action != verdict.Defer || m.Entry != e.Key || m.Reason != e.Reason || m.File != "" || m.Line != 0 {
		t.Errorf("%+v", d)
	}
	if v, err = v.With(Change{List: "blocked", Entry: e, Remove: true}); err != nil {
		t.Fatal(err)
	}
	if d := lookup(t, v, verdict.Envelope, parse(t, "x@bulk.example")); d.Match.Entry != "bulk.example" {
		t.Errorf("added and removed: %+v", d)
	}
	if n := set.Lookups(); n != 0 {
		t.Errorf("%d lookups were counted", n)
	}
	entry := e
	entry.For = "ann@example.net"
	alone := blockList("blocked", write(t, inDir(t, "blocked"), "bulk.example\n"))
	filterOnly := build(t, fileConfig{Lists: []fileList{alone}, FilterOnly: true})
	for _, tt := range []struct {
		set  *Set
		c    Change
		want string
	}{
		{set, Change{List: "unknown", Entry: e}, `list "unknown" cannot be changed: there is no such list`},
		{set, Change{List: "blocked", Entry: entry}, "entries of a list by recipient are for one"},
		{set, Change{List: "personal", Entry: e}, "entries of a list by recipient are for one"},
		{filterOnly, Change{List: "blocked", Entry: e}, "the filter alone decides"},
	} {
		if _, err := tt.set.Only(nil).With(tt.c); !errors.Is(err, ErrUnchangeable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.c, err)
		}
	}
}
