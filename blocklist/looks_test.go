package blocklist

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// lookupPlain is the plain twin of [View.Find]: it asks for one key after the
// other, the filter and then the lists.
func (v *View) lookupPlain(stage verdict.Stage, a sender.Address, o FindOptions) (verdict.Verdict, error) {
	f := lookupState{blocks: o.Blocks}
	s := v.set
	s.counters.lookups.Add(1)
	stage &= verdict.AllStages
	var scratch [keyScratch]byte
	walk := a.Walk(scratch[:0])
	walk.Only(v.kinds[stage] & o.Kinds)
	for !f.complete() {
		key, ok := walk.Next()
		if !ok {
			break
		}
		if !s.filter.mayContain(key.Text) {
			continue
		}
		s.counters.maybes.Add(1)
		confirmed, err := v.confirmKey(&f, stage, key)
		if err != nil {
			return verdict.Verdict{}, err
		}
		if !confirmed {
			s.counters.falsePositives.Add(1)
		}
	}
	if f.lists == nil {
		return verdict.Verdict{}, nil
	}
	return Decide([]Found{s.found(stage, &f)}, nil), nil
}

// longerAddress is the address with up to 20 more labels, on either side of the
// number of keys that are looked at together, and maybe a tag.
func longerAddress(r *rand.Rand, address string) string {
	local, domain, ok := strings.Cut(address, "@")
	if !ok {
		return address
	}
	if r.IntN(3) == 0 {
		local += "+tag"
	}
	return local + "@" + strings.Repeat("x.", r.IntN(21)) + domain
}

// lookupFound decides about what Find finds.
func (v *View) lookupFound(stage verdict.Stage, a sender.Address, o FindOptions) (verdict.Verdict, error) {
	found, err := v.Find(stage, a, o)
	return Decide([]Found{found}, nil), err
}

// TestLooksChangeNothing compares lookups with their plain twin: decisions, and
// what is counted, over random lists in filters of every kind, nearly empty or so
// small that they are often wrong.
func TestLooksChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, filter := range everyKind() {
		var listed, wrong, shards int
		for i := range unlessShort(120, 60) {
			lists := randomLists(r)
			bits := []uint64{64, 256, 1 << 16}[i%3]
			set, plain := setWith(t, filter, lists, bits), setWith(t, filter, lists, bits)
			shards = max(shards, set.stats.Shards)
			view, plainView := set.newView(nil), plain.newView(nil)
			for range 30 {
				_, text := randomText(r)
				a := parse(t, longerAddress(r, text))
				stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
				kinds := sender.AllKinds
				if r.IntN(4) == 0 {
					kinds = sender.KindSet(1+r.IntN(int(sender.AllKinds))) & sender.AllKinds
				}
				o := FindOptions{Blocks: r.IntN(4) == 0, Kinds: kinds}
				got, err := view.lookupFound(stage, a, o)
				must(t, err)
				want, err := plainView.lookupPlain(stage, a, o)
				must(t, err)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, %s %s, kinds %b:\ngot  %+v\nwant %+v\nlists %+v", filter.Kind, stage, a, kinds, got, want, lists)
				}
				if got.Matches != nil {
					listed++
				}
			}
			counted := func(s *Set) string {
				return fmt.Sprint(s.Lookups(), " lookups, ", s.Maybes(), " maybes, ", s.FalsePositives(), " false positives")
			}
			if got, want := counted(set), counted(plain); got != want {
				t.Fatalf("%s: %s, want %s", filter.Kind, got, want)
			}
			wrong += int(set.FalsePositives())
		}
		sized := filter.Kind == KindSized || filter.Kind == KindCounting // with room for 100,000 keys: hardly ever wrong
		if listed == 0 || wrong == 0 && !sized {
			t.Errorf("%s: %d listed senders, %d false positives: the test tests less than it should", filter.Kind, listed, wrong)
		}
		if shards < 2 && (filter.Kind == KindSharded || filter.Kind == KindAuto) {
			t.Errorf("%s: never more than one bitmap", filter.Kind)
		}
	}
}
