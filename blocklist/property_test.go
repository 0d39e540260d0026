package blocklist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// The plain twin of Set: it asks of every entry whether it matches, and takes
// rules of precedence one after the other. Small letters only, so that the
// normal form is what is written.
type plainList struct {
	List
	Entries []string
}

// specificity is how specifically an entry matches an address: the place of the
// entry's form among the sentences of the order, 0 first; -1 if it does not
// match.
func specificity(entry, address string) int {
	if address == "<>" || entry == "<>" {
		return map[bool]int{true: 0, false: -1}[address == entry]
	}
	local, domain, _ := strings.Cut(address, "@")
	bare, _, tagged := strings.Cut(local, "+")
	labels := strings.Count(domain, ".") + 1
	parents := func(d string) int { return labels - (strings.Count(d, ".") + 1) }
	below := func(d string) bool { return strings.HasSuffix(domain, "."+d) }
	atDomain := 1
	if tagged {
		atDomain = 2
	}
	lastDomain := atDomain + 1 + 2*(labels-1)
	entryLocal, entryDomain, isAddress := strings.Cut(entry, "@")
	switch {
	case entry == address:
		return 0
	case tagged && entry == bare+"@"+domain:
		return 1
	case isAddress && entryLocal == "" && entryDomain == domain:
		return atDomain
	case isAddress && entryDomain == "" && entryLocal == local:
		return lastDomain + 1
	case isAddress && entryDomain == "" && tagged && entryLocal == bare:
		return lastDomain + 2
	case isAddress:
		return -1
	case strings.HasPrefix(entry, "*."):
		if d := entry[2:]; below(d) {
			return atDomain + 1 + 2*parents(d) - 1
		}
	case entry == domain || below(entry):
		return atDomain + 1 + 2*parents(entry)
	}
	return -1
}

// own is the list's own match: the most specific entry, if no exception is as
// specific or more so.
func (l *plainList) own(address string) (entry string, rank int) {
	rank = -1
	exception := -1
	for _, e := range l.Entries {
		text, isException := strings.CutPrefix(e, "!")
		r := specificity(text, address)
		switch {
		case r < 0:
		case isException:
			if exception < 0 || r < exception {
				exception = r
			}
		case rank < 0 || r < rank:
			entry, rank = text, r
		}
	}
	if exception >= 0 && exception <= rank {
		return "", -1
	}
	return entry, rank
}

func plainDecision(lists []plainList, stage verdict.Stage, address string) string {
	return plainDecisionOf(lists, stage, func(l *plainList) (entry string, rank int) { return l.own(address) })
}

// plainDecisionOf decides on what own returns of each list: its own match, or rank -1.
func plainDecisionOf(lists []plainList, stage verdict.Stage, ownOf func(*plainList) (entry string, rank int)) string {
	type match struct {
		entry string
		rank  int
	}
	own := map[int]match{}
	overridden, clears, shield := -1, false, -1
	for i := range lists {
		l := &lists[i]
		entry, rank := ownOf(l)
		if rank < 0 || l.Stages&stage == 0 {
			continue
		}
		own[i] = match{entry, rank}
		if l.Type == Allow && l.Override && overridden < 0 {
			overridden, clears = i, true
		}
		if l.Type == Allow && (shield < 0 || rank < own[shield].rank) {
			shield = i
		}
	}
	d := verdict.Verdict{ClearsMessage: clears}
	best := -1
	for i := range lists {
		m, ok := own[i]
		if !ok || lists[i].Type == Allow {
			continue
		}
		fallen := clears || shield >= 0 && own[shield].rank <= m.rank
		action := lists[i].action(stage)
		switch {
		case action == verdict.Monitor:
			d.Monitored = append(d.Monitored, verdict.Match{List: lists[i].Name, Entry: m.entry, Shielded: fallen})
		case fallen:
			d.Shielded = true
		case best < 0 || action > lists[best].action(stage):
			best = i
		}
	}
	if best >= 0 {
		d.Action = lists[best].action(stage)
	} else if best = shield; clears {
		best = overridden
	}
	if best >= 0 {
		d.Match = verdict.Match{List: lists[best].Name, Entry: own[best].entry}
	}
	return describeDecision(d)
}

func randomText(r *rand.Rand) (entry, address string) {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	local := pick("a", "b", "a+x", "b+y", "a+x+z")
	labels := []string{pick("p", "q"), pick("p", "q"), pick("r", "s"), pick("example", "test")}
	domain := strings.Join(labels[r.IntN(3):], ".")
	address = local + "@" + domain
	if r.IntN(20) == 0 {
		address = "<>"
	}
	switch r.IntN(6) {
	case 0:
		entry = local + "@" + domain
	case 1:
		entry = "@" + domain
	case 2:
		entry = "*." + domain
	case 3:
		entry = local + "@"
	case 4:
		entry = pick("<>", domain)
	default:
		entry = domain
	}
	return entry, address
}

func randomLists(r *rand.Rand) []plainList {
	lists := make([]plainList, 1+r.IntN(5))
	for i := range lists {
		l := &lists[i]
		l.Name = fmt.Sprintf("list%d", i)
		l.Stages = []verdict.Stage{verdict.Envelope, verdict.Header, verdict.AllStages}[r.IntN(3)]
		if r.IntN(3) == 0 {
			l.Type, l.Override = Allow, r.IntN(3) == 0
		} else {
			l.Action = verdict.Tag + verdict.Action(r.IntN(5))
			l.HeaderAction = verdict.Action(r.IntN(6))
		}
		for range r.IntN(12) {
			entry, _ := randomText(r)
			if l.Type == Block && r.IntN(3) == 0 {
				entry = "!" + entry
			}
			l.Entries = append(l.Entries, entry)
		}
	}
	return lists
}

// setOf makes a Set of lists without files.
func setOf(t *testing.T, lists []plainList, bits uint64) *Set {
	t.Helper()
	return setWith(t, Filter{}, lists, bits)
}

// setWith is setOf with a filter of any kind.
func setWith(t *testing.T, filter Filter, lists []plainList, bits uint64) *Set {
	t.Helper()
	c := SetConfig{Keys: ProcessKeys()}
	for i := range lists {
		c.Lists = append(c.Lists, SetList{List: lists[i].List, Index: makeIndexOf(t, lists[i].PerRecipient, lists[i].Entries...)})
	}
	layout := layoutOf(t, filter)
	layout.classicBits = bits
	set, err := newSet(t.Context(), c, layout)
	must(t, err)
	return set
}

// Random lists and lookups: the Set decides as its plain twin does, in a filter
// so small that it is often wrong.
func TestSetAgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var falsePositives uint64
	for range unlessShort(1500, 150) {
		lists := randomLists(r)
		set := setOf(t, lists, 256)
		for range 40 {
			_, address := randomText(r)
			stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
			got := describeDecision(lookup(t, set, stage, parse(t, address)))
			if want := plainDecision(lists, stage, address); got != want {
				t.Fatalf("%s %s:\ngot  %s\nwant %s\nlists %+v", stage, address, got, want, lists)
			}
		}
		falsePositives += set.FalsePositives()
	}
	if falsePositives == 0 {
		t.Error("the filter was never wrong: the test tests less than it should")
	}
}

// Counters: what the filter lets through and no list holds, whatever its stage,
// is a false positive.
func TestCounters(t *testing.T) {
	lists := []plainList{
		{List{Name: "h", Stages: verdict.Header, Action: verdict.Reject}, []string{"example.com"}},
		{List{Name: "e", Stages: verdict.Envelope, Action: verdict.Reject}, []string{"example.net", "!ok.example.net"}},
	}
	set := setOf(t, lists, 1<<20)
	for _, address := range []string{"u@example.com", "u@ok.example.net", "u@example.org", "<>"} {
		if d := lookup(t, set, verdict.Envelope, parse(t, address)); d.Action != verdict.Accept || d.Matches != nil {
			t.Errorf("%s: %+v", address, d)
		}
	}
	if n, maybe, fp := set.Lookups(), set.Maybes(), set.FalsePositives(); n != 4 || maybe != 2 || fp != 0 {
		t.Errorf("%d lookups, %d maybes, %d false positives", n, maybe, fp)
	}
	// In 8 bits of eleven hashes next to every key is a maybe.
	set = setOf(t, lists, 8)
	lookup(t, set, verdict.Envelope, parse(t, "u@example.org"))
	if n, maybe, fp := set.Lookups(), set.Maybes(), set.FalsePositives(); n != 1 || maybe == 0 || fp != maybe {
		t.Errorf("%d lookups, %d maybes, %d false positives", n, maybe, fp)
	}
}

// Keys of a kind that no list of the stage holds are not even asked for.
func TestKinds(t *testing.T) {
	set := setOf(t, []plainList{
		{List{Name: "h", Stages: verdict.Header, Action: verdict.Reject}, []string{"u@", "<>"}},
		{List{Name: "e", Stages: verdict.Envelope, Action: verdict.Reject}, []string{"example.net"}},
	}, 1<<20)
	for stage, kinds := range map[verdict.Stage][]sender.Kind{
		0:                 nil,
		verdict.Envelope:  {sender.KindDomain},
		verdict.Header:    {sender.KindLocal, sender.KindNull},
		verdict.AllStages: {sender.KindDomain, sender.KindLocal, sender.KindNull},
	} {
		for k := sender.KindAddress; k <= sender.KindNull; k++ {
			if set.all.kinds[stage].Has(k) != slices.Contains(kinds, k) {
				t.Errorf("stage %q, kind %s", stage, k)
			}
		}
	}
}
