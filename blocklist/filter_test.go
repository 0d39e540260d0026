package blocklist

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/internal/disposable"
)

// everyFilter is each kind with each sort of family that goes with it.
func everyFilter() []Filter {
	filters := []Filter{{}, {Kind: KindClassic, Family: "classic9"}, {Family: "classic:RS,AP"}, {Kind: KindAuto}, {Kind: KindSharded, Family: "classic9"},
		{Kind: KindFuse, FPR: 1e-2}, {Kind: KindFuse, FPR: 1e-3}, {Kind: KindFuse}}
	for _, kind := range []Kind{KindSized, KindCounting} {
		for _, family := range []string{"", "classic", "classic9", "weighted", "digest", "double", "double:murmur3", "seeded:7"} {
			filters = append(filters, Filter{Kind: kind, Family: family, FPR: 1e-3})
		}
	}
	return filters
}

// someFilters are those of everyFilter, or with -short one of each kind.
func someFilters() []Filter {
	if testing.Short() {
		return everyKind()
	}
	return everyFilter()
}

func (f Filter) String() string { return fmt.Sprintf("kind=%s,family=%s", f.Kind, f.Family) }

// Whatever the filter, what is listed is found, and false positives are about as
// frequent as was asked for. The sized filters are made for exactly the entries
// that the list has.
func TestEveryFilter(t *testing.T) {
	domains := disposable.Domains()[:unlessShort(20_000, 4000)]
	path := write(t, inDir(t, "list.txt"), string(bytes.Join(domains, []byte("\n")))+"\n")
	for _, f := range someFilters() {
		t.Run(f.String(), func(t *testing.T) {
			c := fast(blockList("disposable", path))
			f.Entries = uint64(len(domains))
			c.Filter = f
			set := build(t, c)
			for i := 0; i < len(domains); i += 7 {
				if d := lookup(t, set, verdict.Envelope, parse(t, "user@"+string(domains[i]))); d.Action != verdict.Reject {
					t.Fatalf("%s is listed and was not found", domains[i])
				}
			}
			stats := set.Stats()
			before := set.FalsePositives()
			asked := len(domains)
			for i := range asked {
				// No two have a key in common: one that passes would pass each time.
				lookup(t, set, verdict.Envelope, parse(t, fmt.Sprintf("u%d@w%d.example%d", i, i, i)))
			}
			wrong := set.FalsePositives() - before
			t.Logf("%d bits, %d hashes, %d bytes: %d of %d domains passed, and expected were %.3g", stats.Bits, stats.Hashes, stats.FilterBytes, wrong, asked, stats.FPR*float64(asked))
			if stats.Warning != "" {
				t.Error(stats.Warning)
			}
			// The filter has but this one list: what is computed of the list alone is what
			// the filter has come to.
			alone := stats.Lists[0]
			if math.Abs(alone.FillRatio-stats.FillRatio) > 0.03*stats.FillRatio || math.Abs(alone.FPR-stats.FPR) > 0.2*stats.FPR {
				t.Errorf("the filter has fill ratio %.4g and FPR %.4g; the list's are said to be %.4g and %.4g", stats.FillRatio, stats.FPR, alone.FillRatio, alone.FPR)
			}
			// Weighted and classic hashes do worse on such names than they should;
			// how much is the hash laboratory's subject.
			if wrong > uint64(asked)/10 {
				t.Errorf("%d of %d absent domains passed the filter", wrong, asked)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	names := 0
	draw := func() (some []string) {
		for i := range names {
			if r.IntN(2) == 0 {
				some = append(some, fmt.Sprintf("d%d.example", i))
			}
		}
		return some
	}
	for i := range 60 {
		names = 60
		if i == 0 {
			names = 5 * differenceKeys // several ranges
		}
		old, new := draw(), draw()
		var gone, came []string
		err := difference(context.Background(), makeSegment(t, old...), makeSegment(t, new...),
			func(key []byte) { gone = append(gone, string(key)) },
			func(key []byte) { came = append(came, string(key)) })
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(gone)
		slices.Sort(came)
		if want := without(old, new); !slices.Equal(gone, want) {
			t.Fatalf("gone: %q, want %q", gone, want)
		}
		if want := without(new, old); !slices.Equal(came, want) {
			t.Fatalf("came: %q, want %q", came, want)
		}
	}
}

// without is what of a is not in b, or there less often, sorted.
func without(a, b []string) []string {
	in := map[string]int{}
	for _, s := range b {
		in[s]++
	}
	var rest []string
	for _, s := range a {
		if in[s]--; in[s] < 0 {
			rest = append(rest, s)
		}
	}
	slices.Sort(rest)
	return rest
}

// A counting filter that was changed again and again has the bits of one that is
// made anew, although lists share entries.
func TestCountingFollows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, family := range []string{"double", "classic", "weighted"} {
		layout := layoutOf(t, Filter{Kind: KindCounting, Family: family, FPR: 0.01, CounterBits: 8, Entries: 200})
		versions := []*Index{noEntries, noEntries, noEntries}
		var set *Set
		for range 100 {
			var entries []string
			for i := range 40 {
				if r.IntN(2) == 0 {
					entries = append(entries, fmt.Sprintf("d%d.example", i))
				}
			}
			versions[r.IntN(len(versions))] = versionOf(t, entries...)
			before := set
			set = makeSet(t, layout, versions, before)
			anew := makeSet(t, layout, versions)
			if !bytes.Equal(bitsOf(t, set.filter), bitsOf(t, anew.filter)) || set.filter.single.SetBits() != anew.filter.single.SetBits() {
				t.Fatalf("%s: %d bits set, in a new filter %d", family, set.filter.single.SetBits(), anew.filter.single.SetBits())
			}
			if before != nil && set.filter.single == before.filter.single {
				t.Fatal("the filter that serves was changed in place")
			}
		}
	}
}

// The changed copy is one: it still has a key that no list accounts for. Where
// the lists outgrow the room, or leave most of it empty, the filter is new.
func TestCountingCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("fills large filters")
	}
	layout := layoutOf(t, Filter{Kind: KindCounting})
	make := func(n int, before *Set) *Set { return makeSet(t, layout, []*Index{manyDomains(t, n)}, before) }
	stray := []byte("stray.example")
	first := make(300_000, nil)
	first.filter.counting.Add(stray)
	for _, tt := range []struct {
		entries int
		copied  bool
	}{{300_001, true}, {450_001, false}, {75_001, true}, {75_000, false}} {
		set := make(tt.entries, first)
		if set.filter.mayContain(stray) != tt.copied {
			t.Errorf("%d entries after 300,000: copied %t, want %t", tt.entries, !tt.copied, tt.copied)
		}
		if set.filter.capacity < uint64(tt.entries) {
			t.Errorf("%d entries: room for %d", tt.entries, set.filter.capacity)
		}
	}
}
