package blocklist

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// lookupFor is what a View says of a sender for the keys of a recipient.
func lookupFor(tb testing.TB, v *View, stage verdict.Stage, a sender.Address, keys []string) verdict.Verdict {
	tb.Helper()
	var f lookupState
	must(tb, v.search(stage, a, sender.AllKinds, &f))
	must(tb, v.searchFor(stage, a, sender.AllKinds, keys, &f))
	return Decide([]Found{v.set.found(stage, &f)}, nil)
}

// ownFor is the list's own match for a recipient: the line whose recipient's side is the most
// specific, of those with the most specific sender's side, if no exception is as specific or
// more so. The recipient's side counts first.
func (l *plainList) ownFor(recipient, address string) (entry string, rank int) {
	if !l.PerRecipient {
		return l.own(address)
	}
	best, exception := [2]int{-1, -1}, [2]int{-1, -1}
	for _, line := range l.Entries {
		to, text, _ := strings.Cut(line, " ")
		text, isException := strings.CutPrefix(text, "!")
		positions := [2]int{specificity(to, recipient), specificity(text, address)}
		switch {
		case positions[0] < 0 || positions[1] < 0:
		case isException:
			if exception[0] < 0 || slices.Compare(positions[:], exception[:]) < 0 {
				exception = positions
			}
		case best[0] < 0 || slices.Compare(positions[:], best[:]) < 0:
			best, entry = positions, text
		}
	}
	if best[0] < 0 || exception[0] >= 0 && slices.Compare(exception[:], best[:]) <= 0 {
		return "", -1
	}
	return entry, best[1]
}

// keysOf are the sides of lines that match a recipient, most specific first.
func keysOf(lists []plainList, recipient string) (keys []string) {
	for _, l := range lists {
		for _, line := range l.Entries {
			to, _, _ := strings.Cut(line, " ")
			if l.PerRecipient && specificity(to, recipient) >= 0 && !slices.Contains(keys, to) {
				keys = append(keys, to)
			}
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(specificity(a, recipient), specificity(b, recipient)) })
	return keys
}

// Random lists with and without lines for recipients: the Set decides as its plain twin does,
// in a filter so small that it is often wrong.
func TestPerRecipientAgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 4))
	count, shared := 0, 0
	for range unlessShort(300, 60) {
		lists := randomLists(r)
		for i := range lists {
			if lists[i].PerRecipient = r.IntN(2) == 0; !lists[i].PerRecipient {
				continue
			}
			for k, entry := range lists[i].Entries {
				to, _ := randomText(r)
				if to == "<>" {
					to = "a@"
				}
				lists[i].Entries[k] = to + " " + entry
			}
		}
		set := setOf(t, lists, 512)
		for range 40 {
			_, address := randomText(r)
			_, recipient := randomText(r)
			stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
			keys, err := set.Only(nil).RecipientKeys(parse(t, recipient))
			must(t, err)
			if want := keysOf(lists, recipient); recipient != "<>" && !slices.Equal(keys, want) {
				t.Fatalf("%s: keys %q, want %q\nlists %+v", recipient, keys, want, lists)
			}
			if len(keys) > 0 {
				count++
			}
			got := describeDecision(lookupFor(t, set.Only(nil), stage, parse(t, address), keys))
			want := plainDecisionOf(lists, stage, func(l *plainList) (string, int) {
				if recipient == "<>" && l.PerRecipient {
					return "", -1
				}
				return l.ownFor(recipient, address)
			})
			if got != want {
				t.Fatalf("%s %s for %s:\ngot  %s\nwant %s\nlists %+v", stage, address, recipient, got, want, lists)
			}
			if got != describeDecision(lookup(t, set, stage, parse(t, address))) {
				shared++
			}
		}
	}
	if count == 0 || shared == 0 {
		t.Errorf("%d recipients with keys, %d verdicts that depend on the recipient: the test tests less than it should", count, shared)
	}
}

// perRecipientList is a block list with lines for recipients, in a file.
func perRecipientList(tb testing.TB, name string, lines ...string) fileList {
	l := blockList(name, write(tb, inDir(tb, name), strings.Join(lines, "\n")+"\n"))
	l.PerRecipient = true
	return l
}

func TestPerRecipient(t *testing.T) {
	personal := perRecipientList(t, "personal",
		"ann@example.net news.example # no news ## asked for",
		"ann@example.net !daily.news.example",
		"@example.net daily.news.example",
		"@example.net shop.example # until=2001-01-01",
		"example.net <>",
		"sales@ *.shop.example",
	)
	wanted := perRecipientList(t, "wanted", "ann@example.net partner.example", "bob@example.net boss@partner.example")
	wanted.Type, wanted.Action = Allow, verdict.Accept
	all := blockList("all", write(t, inDir(t, "all"), "partner.example\n"))
	set := build(t, fast(personal, wanted, all))
	for _, tt := range []struct {
		recipient, sender string
		want              string // list, recipient's side, entry, line
	}{
		{"ann@example.net", "x@news.example", "reject personal ann@example.net news.example:1"},
		{"ann+tag@example.net", "x@www.news.example", "reject personal ann@example.net news.example:1"},
		{"ann@example.net", "x@daily.news.example", "accept"}, // the exception, since Ann's line counts before her domain's
		{"bob@example.net", "x@daily.news.example", "reject personal @example.net daily.news.example:3"},
		{"bob@example.net", "x@news.example", "accept"},
		{"bob@example.net", "x@shop.example", "accept"}, // expired
		{"bob@example.net", "<>", "reject personal example.net <>:5"},
		{"bob@mail.example.net", "<>", "reject personal example.net <>:5"},
		{"sales@example.org", "x@eu.shop.example", "reject personal sales@ *.shop.example:6"},
		{"sales@example.org", "x@shop.example", "accept"},
		{"ann@example.org", "x@news.example", "accept"},
		{"ann@example.net", "x@partner.example", "accept wanted ann@example.net partner.example:1"},
		{"bob@example.net", "x@partner.example", "reject all  partner.example:1"},
		{"bob@example.net", "boss@partner.example", "accept wanted bob@example.net boss@partner.example:2"},
		{"eve@example.net", "boss@partner.example", "reject all  partner.example:1"},
	} {
		keys, err := set.Only(nil).RecipientKeys(parse(t, tt.recipient))
		must(t, err)
		d := lookupFor(t, set.Only(nil), verdict.Envelope, parse(t, tt.sender), keys)
		got := d.Action.String()
		if m := d.Match; !m.IsZero() {
			got += fmt.Sprintf(" %s %s %s:%d", m.List, m.For, m.Entry, m.Line)
			if m.Line == 1 && m.List == "personal" && (m.Reason != "no news" || m.Note != "asked for") {
				t.Errorf("%+v", m)
			}
		}
		if got != tt.want {
			t.Errorf("%s to %s: %s, want %s", tt.sender, tt.recipient, got, tt.want)
		}
	}
}

// TestPerRecipientViews: a list counts only in the Views that have it, and at its stages. A
// guess is not let in, nor excepted.
func TestPerRecipientViews(t *testing.T) {
	block := perRecipientList(t, "b", "ann@example.net news.example", "ann@example.net !x@news.example")
	block.Stages = verdict.Header
	other := perRecipientList(t, "o", "ann@example.net shop.example", "bob@example.net shop.example")
	allow := perRecipientList(t, "a", "ann@example.net y@news.example")
	allow.Type, allow.Action = Allow, verdict.Accept
	set := build(t, fast(block, other, allow))
	ann := []string{"ann@example.net"}
	for _, tt := range []struct {
		lists  []string
		stage  verdict.Stage
		sender string
		blocks bool
		want   string
	}{
		{nil, verdict.Header, "z@news.example", false, "b"},
		{nil, verdict.Envelope, "z@news.example", false, ""},
		{[]string{"o"}, verdict.Header, "z@news.example", false, ""},
		{[]string{"b"}, verdict.Header, "z@news.example", false, "b"},
		{nil, verdict.Header, "x@news.example", false, ""},
		{nil, verdict.Header, "x@news.example", true, "b"},
		{nil, verdict.Header, "y@news.example", false, "a"},
		{nil, verdict.Header, "y@news.example", true, "b"},
	} {
		f := lookupState{blocks: tt.blocks}
		v := set.Only(tt.lists)
		must(t, v.searchFor(tt.stage, parse(t, tt.sender), sender.AllKinds, ann, &f))
		if got := Decide([]Found{v.set.found(tt.stage, &f)}, nil).Match.List; got != tt.want {
			t.Errorf("%q %s %s, blocks %v: list %q, want %q", tt.lists, tt.stage, tt.sender, tt.blocks, got, tt.want)
		}
	}
	for recipient, want := range map[string]map[string]int{"bob@example.net": {"": 1, "b": 0, "o": 1}, "eve@example.net": {"": 0}} {
		for list, n := range want {
			var lists []string
			if list != "" {
				lists = []string{list}
			}
			if keys, err := set.Only(lists).RecipientKeys(parse(t, recipient)); err != nil || len(keys) != n {
				t.Errorf("%s, list %q: keys %q, %v", recipient, list, keys, err)
			}
		}
	}
	var f lookupState
	if err := set.Only(nil).searchFor(0, parse(t, "z@news.example"), sender.AllKinds, ann, &f); err == nil {
		t.Error("a stage that does not exist has an answer")
	}
}

// TestPerRecipientHits: the entry that matches is the one that hits, and markers are neither
// entries nor duplicates.
func TestPerRecipientHits(t *testing.T) {
	l := perRecipientList(t, "l", "ann@example.net news.example", "ann@example.net news.example", "ann@example.net x@shop.example")
	c := fast(l)
	var hits []uint64
	c.OnHit = func(_ string, hash uint64) { hits = append(hits, hash) }
	set := build(t, c)
	lookupFor(t, set.Only(nil), verdict.Header, parse(t, "y@news.example"), []string{"ann@example.net"})
	index, key, _, _ := set.Index("l")
	if want := key.Hash([]byte("ann@example.net\tnews.example")); !slices.Equal(hits, []uint64{want}) {
		t.Errorf("hits %x, want %x", hits, want)
	}
	if index.Len() != 2 || index.Keys() != 3 || index.Duplicates() != 1 || set.Stats().Entries != 3 {
		t.Errorf("%d entries, %d keys, %d duplicates; stats say %d", index.Len(), index.Keys(), index.Duplicates(), set.Stats().Entries)
	}
	if n, fp := set.Lookups(), set.FalsePositives(); n != 1 || fp != 0 {
		t.Errorf("%d lookups, %d false positives", n, fp)
	}
}

// TestPerRecipientKinds: the kinds of entries for recipients cost other lookups nothing.
func TestPerRecipientKinds(t *testing.T) {
	set := build(t, fast(perRecipientList(t, "l", "ann@example.net x@", "@example.net *.news.example"), blockList("b", write(t, inDir(t, "b"), "shop.example\n"))))
	if got := set.all.kinds[verdict.AllStages]; got != sender.KindSet(0).With(sender.KindDomain) {
		t.Errorf("kinds %b", got)
	}
	if got := set.all.forKinds[verdict.AllStages]; got != sender.KindSet(0).With(sender.KindLocal).With(sender.KindSubdomains) {
		t.Errorf("kinds for recipients %b", got)
	}
}

func TestPerRecipientAllocations(t *testing.T) {
	plain := build(t, fast(blockList("b", write(t, inDir(t, "b"), "shop.example\n"))))
	set := build(t, fast(perRecipientList(t, "l", "ann@example.net x@", "@example.net news.example")))
	a, ann, bob := parse(t, "someone+tag@mail.example.com"), parse(t, "ann+tag@example.net"), parse(t, "bob+tag@mail.example.org")
	keys, err := set.Only(nil).RecipientKeys(ann)
	must(t, err)
	for name, do := range map[string]func(){
		"no such list":              func() { plain.all.RecipientKeys(ann) },
		"a recipient without lines": func() { set.all.RecipientKeys(bob) },
		"a sender without":          func() { set.all.searchFor(verdict.Header, a, sender.AllKinds, nil, new(lookupState)) },
		"an unknown sender": func() {
			var f lookupState
			set.all.searchFor(verdict.Header, a, sender.AllKinds, keys, &f)
		},
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if len(keys) != 2 {
		t.Errorf("keys %q", keys)
	}
}
