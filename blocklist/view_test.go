package blocklist

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// subset picks some of the lists, and gives their names in any order with one
// that no list has.
func subset(r *rand.Rand, lists []plainList) (some []plainList, names []string) {
	for _, l := range lists {
		if r.IntN(2) == 0 {
			some = append(some, l)
			names = append(names, l.Name)
		}
	}
	names = append(names, "unknown")
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return some, names
}

// Random lists, and some of them: the View decides as the plain twin does of
// these lists alone, and says all that a Set of these alone would.
func TestViewAgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var shielded, cleared, monitored, falsePositives int
	for range unlessShort(600, 100) {
		lists := randomLists(r)
		some, names := subset(r, lists)
		whole, alone := setOf(t, lists, 256), setOf(t, some, 256)
		whole.monitor = r.IntN(4) == 0
		alone.monitor = whole.monitor
		view := whole.Only(names)
		for range 40 {
			_, address := randomText(r)
			stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
			got := lookup(t, view, stage, parse(t, address))
			if want := lookup(t, alone, stage, parse(t, address)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s %s of %q:\ngot  %+v\nwant %+v\nlists %+v", stage, address, names, got, want, lists)
			}
			if got.Would != nil {
				got = *got.Would
			}
			if got, want := describeDecision(got), plainDecision(some, stage, address); got != want {
				t.Fatalf("%s %s of %q:\ngot  %s\nwant %s\nlists %+v", stage, address, names, got, want, lists)
			}
			if got.Shielded {
				shielded++
			}
			if got.ClearsMessage {
				cleared++
			}
			if got.Monitored != nil {
				monitored++
			}
		}
		falsePositives += int(whole.FalsePositives())
	}
	if shielded == 0 || cleared == 0 || monitored == 0 || falsePositives == 0 {
		t.Errorf("%d shielded, %d cleared, %d monitored, %d false positives: the test tests less than it should",
			shielded, cleared, monitored, falsePositives)
	}
}

// viewLists are two lists with one kind of key.
func viewLists() []plainList {
	return []plainList{
		{List{Name: "a", Stages: verdict.AllStages, Action: verdict.Reject}, []string{"example.com"}},
		{List{Name: "b", Stages: verdict.AllStages, Action: verdict.Defer}, []string{"example.net", "@example.org"}},
	}
}

// What another list holds is a maybe that is confirmed, and no match; and a kind
// of key that only other lists hold is not asked for.
func TestViewCounters(t *testing.T) {
	set := setOf(t, viewLists(), 1<<20)
	a := set.Only([]string{"a"})
	for address, want := range map[string]verdict.Action{"u@example.com": verdict.Reject, "u@example.net": verdict.Accept, "u@example.org": verdict.Accept, "u@example.test": verdict.Accept} {
		if d := lookup(t, a, verdict.Envelope, parse(t, address)); d.Action != want {
			t.Errorf("%s: %+v", address, d)
		}
	}
	if n, maybe, fp := set.Lookups(), set.Maybes(), set.FalsePositives(); n != 4 || maybe != 2 || fp != 0 {
		t.Errorf("%d lookups, %d maybes, %d false positives", n, maybe, fp)
	}
	if d := lookup(t, set, verdict.Envelope, parse(t, "u@example.org")); d.Action != verdict.Defer {
		t.Errorf("%+v", d)
	}
}

func TestViewKept(t *testing.T) {
	set := setOf(t, viewLists(), 1<<20)
	if set.Only(nil) != set.Only([]string{}) || set.Only(nil).Set() != set {
		t.Error("no names are not all")
	}
	names := []string{"a"}
	first := set.Only(names)
	names[0] = "b" // the View keeps its own
	if set.Only([]string{"a"}) != first || set.Only(names) == first {
		t.Error("the Views of a and of b are not what they should be")
	}
	for i := range 3 * maxViews {
		v := set.Only([]string{fmt.Sprint(i)})
		if d := lookup(t, v, verdict.Envelope, parse(t, "u@example.com")); d.Action != verdict.Accept {
			t.Errorf("%+v", d)
		}
	}
	if n := len(*set.views.kept.Load()); n != maxViews {
		t.Errorf("%d views kept", n)
	}
	if set.Only([]string{"a"}) != first {
		t.Error("the first is lost")
	}
}

// TestViewOnly: those lists of a View count that are named, and no others. A recipient's
// choice must not bring in lists that the listener leaves out.
func TestViewOnly(t *testing.T) {
	set := setOf(t, viewLists(), 1<<20)
	a := set.Only([]string{"a"})
	for _, c := range []struct {
		view     *View
		com, net verdict.Action
	}{
		{a.Only(nil), verdict.Reject, verdict.Accept},
		{a.Only([]string{"a", "b"}), verdict.Reject, verdict.Accept},
		{a.Only([]string{"b"}), verdict.Accept, verdict.Accept},
		{a.Only([]string{}), verdict.Accept, verdict.Accept},
		{set.Only(nil).Only([]string{"b"}), verdict.Accept, verdict.Defer},
		{set.Only(nil).Only([]string{}), verdict.Accept, verdict.Accept},
	} {
		com := lookup(t, c.view, verdict.Envelope, parse(t, "u@example.com")).Action
		net := lookup(t, c.view, verdict.Envelope, parse(t, "u@example.net")).Action
		if com != c.com || net != c.net {
			t.Errorf("%q: %v and %v, want %v and %v", c.view.names, com, net, c.com, c.net)
		}
	}
}

// TestViewUnwrapping: a View that unwraps in one way is not taken for that of another way.
func TestViewUnwrapping(t *testing.T) {
	set := setOf(t, viewLists(), 1<<20)
	for range 2 { // the second time they are kept
		for _, w := range []sender.Wrappings{sender.SRS, sender.BATV, sender.SRS | sender.BATV, 0} {
			if v := set.Only([]string{"a"}).Unwrapping(w); v.Wrappings() != w {
				t.Errorf("%v: %v", w, v.Wrappings())
			}
		}
	}
}

func TestViewConcurrent(t *testing.T) {
	set := setOf(t, viewLists(), 1<<20)
	address := parse(t, "u@example.net")
	var wg sync.WaitGroup
	views := make([]*View, 8)
	for i := range views {
		wg.Go(func() {
			for j := range maxViews {
				lookup(t, set.Only([]string{"b", fmt.Sprint(j)}), verdict.Envelope, address)
			}
			views[i] = set.Only([]string{"b", "7"})
		})
	}
	wg.Wait()
	for _, v := range views {
		if v != views[0] {
			t.Error("two Views of the same names")
		}
	}
}

// TestUncounted: who only wants to know makes no entry look used.
func TestUncounted(t *testing.T) {
	hits := 0
	set, err := NewSet(t.Context(), SetConfig{
		Keys: ProcessKeys(), OnHit: func(string, uint64) { hits++ },
		Lists: []SetList{{List: List{Name: "a", Action: verdict.Reject}, Index: makeIndexOf(t, false, "example.com")}},
	})
	must(t, err)
	for i, v := range []*View{set.Only(nil).Uncounted(), set.Only(nil)} {
		if d := lookup(t, v, verdict.Envelope, parse(t, "u@example.com")); d.Action != verdict.Reject || hits != i {
			t.Errorf("%v, %d hits, want %d", d.Action, hits, i)
		}
	}
}

// TestListNames: what a reply shows of a list cannot end a line.
func TestListNames(t *testing.T) {
	for name, good := range map[string]bool{"spam": true, "dbl of us": true, "": false, " spam": false, "spam ": false, "a\nb": false, "a\x00b": false, "a\ufffdb": false} {
		l := List{Name: name, Type: Block, Action: verdict.Reject}
		if err := l.Validate(); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
