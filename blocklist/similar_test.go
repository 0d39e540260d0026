package blocklist

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/internal/hashlab"
)

// TestShownRateHolds measures small classic filters with absent keys of the same kinds as
// their entries: the rate that is shown is never below the upper limit of what is
// measured. The filters have as many bits for each key as 2^28 bits have for 10 and for
// 16.6 million keys, and enough queries that their own upper limit is not the larger one
// by chance; bench/names does it in full size.
func TestShownRateHolds(t *testing.T) {
	l := smallLayout(t, Filter{})
	l.classicBits = 1 << 20
	for _, keys := range hashlab.NameSets() {
		for _, n := range []int{39_063, 65_000}[:unlessShort(2, 1)] {
			locate := keys.New(1)
			var key []byte
			set := makeSet(t, l, []*Index{indexOf(t, n, func(i int) string {
				key = locate(key[:0], uint64(i))
				return string(key)
			})})
			must(t, set.Probe(t.Context(), 0))
			stats := set.Stats()
			wrong, queries := 0, 1_500_000
			for i := range queries {
				if key = locate(key[:0], uint64(n+i)); set.filter.mayContain(key) {
					wrong++
				}
			}
			_, high := bloom.Limits(wrong, queries)
			t.Logf("%s, %d keys: shown %.3g (computed %.3g, fill^9 %.3g), measured %.3g, at most %.3g", keys.Name, n, stats.FPR,
				stats.ComputedFPR, math.Pow(stats.FillRatio, 9), float64(wrong)/float64(queries), high)
			if stats.FPR < high || stats.Unprobed || stats.FPR < stats.ComputedFPR {
				t.Errorf("%s, %d keys: a rate of %.3g is shown, and up to %.3g measured (%d of %d)", keys.Name, n, stats.FPR, high, wrong, queries)
			}
		}
	}
}

// A changed entry differs from the entry, and in the way that its name says.
func TestChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, entry := range []string{"user00000001@example.com", "a@b.example", "mx17.example.net", "0@x1.example", "user@", "<>", "xn--9.example"} {
		for _, c := range changes {
			for range 200 {
				got, ok := c.do([]byte(entry), 1000, r)
				if !ok {
					if string(got) != entry {
						t.Fatalf("%s of %q: %q, though nothing was changed", c.what, entry, got)
					}
					continue
				}
				number := strings.Contains(c.what, "number")
				if longer := len(got) - len(entry); longer != 0 && !(number && longer <= 4) {
					t.Fatalf("%s of %q: %q", c.what, entry, got)
				}
				if !number && string(got) == entry {
					t.Fatalf("%s of %q changes nothing", c.what, entry)
				}
				if dot := strings.LastIndexByte(entry, '.'); dot >= 0 && !strings.HasSuffix(string(got), entry[dot:]) {
					t.Fatalf("%s of %q: %q has another top-level domain", c.what, entry, got)
				}
				if strings.Count(string(got), "@") != strings.Count(entry, "@") || strings.Count(string(got), ".") != strings.Count(entry, ".") {
					t.Fatalf("%s of %q: %q", c.what, entry, got)
				}
			}
		}
	}
}

// What was measured stays with a filter that has hardly changed, and goes with one that
// has. Filters that have their rate for any keys are not probed.
func TestProbeIsTakenOver(t *testing.T) {
	l := smallLayout(t, Filter{})
	first := makeSet(t, l, []*Index{manyDomains(t, 9000)})
	if s := first.Stats(); !s.Unprobed || s.FPR != s.ComputedFPR {
		t.Errorf("before: %+v", s)
	}
	must(t, first.Probe(t.Context(), 40_000))
	stats := first.Stats()
	if stats.Unprobed || len(stats.Similar) != len(changes) || stats.FPR < stats.ComputedFPR {
		t.Errorf("probed: %+v", stats)
	}
	near := makeSet(t, l, []*Index{manyDomains(t, 9050)}, first)
	if s := near.Stats(); s.Unprobed || Worst(s.Similar) != Worst(stats.Similar) {
		t.Errorf("after a small change: %+v", s)
	}
	if s := makeSet(t, l, []*Index{manyDomains(t, 12_000)}, first).Stats(); !s.Unprobed {
		t.Errorf("after a large change: %+v", s)
	}
	large := smallLayout(t, Filter{})
	large.classicBits = 1 << 22
	short := makeSet(t, large, []*Index{manyDomains(t, 10)})
	must(t, short.Probe(t.Context(), 40_000))
	if s := makeSet(t, large, []*Index{manyDomains(t, 200)}, short).Stats(); s.Unprobed {
		t.Errorf("a nearly empty filter: %+v", s)
	}
	double := makeSet(t, smallLayout(t, Filter{Kind: KindSized}), []*Index{manyDomains(t, 9000)})
	must(t, double.Probe(t.Context(), 0))
	if s := double.Stats(); s.Unprobed || s.Similar != nil || s.FPR != s.ComputedFPR {
		t.Errorf("double: %+v", s)
	}
}

// The rate of one or two classic hashes is not a number before it was measured, and then
// far above what any formula says.
func TestUnpredictableRate(t *testing.T) {
	l := smallLayout(t, Filter{Kind: KindClassic, Family: "classic:BP"})
	set := makeSet(t, l, []*Index{manyDomains(t, 9000)})
	if s := set.Stats(); !math.IsNaN(s.FPR) || !math.IsNaN(s.ComputedFPR) {
		t.Errorf("before: %v, %v", s.FPR, s.ComputedFPR)
	}
	must(t, set.Probe(t.Context(), 40_000))
	if s := set.Stats(); !(s.FPR > 0.01) {
		t.Errorf("measured: %v", s.FPR)
	}
	cost, err := l.Filter.Cost(9000)
	if err != nil || !math.IsNaN(cost.FPR) {
		t.Errorf("cost: %+v, %v", cost, err)
	}
}

// A family that misses the configured rate is a warning that names one that has it.
func TestProbeWarns(t *testing.T) {
	l := smallLayout(t, Filter{Kind: KindSized, Family: "classic:BP", FPR: 0.01, Entries: 3000})
	locate := hashlab.NameSets()[5].New(0)
	set := makeSet(t, l, []*Index{indexOf(t, 3000, func(i int) string { return string(locate(nil, uint64(i))) })})
	must(t, set.Probe(t.Context(), 0))
	if s := set.Stats(); !strings.Contains(s.Warning, `"double"`) || !strings.Contains(s.Warning, "fpr = 0.01") {
		t.Errorf("warning %q with %+v", s.Warning, s.Similar)
	}
}
