package hashlab

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// smallExperiment returns an experiment with few keys of a generated corpus.
func smallExperiment(tb testing.TB, keys int, m uint64, k int) *experiment {
	tb.Helper()
	p, err := newExperiment(context.Background(), made(tb, defaultSources(1, keys)[2]), newShape(keys, m, k, false), 1)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// subjectNamed returns one of the default subjects.
func subjectNamed(tb testing.TB, name string, k int) subject {
	tb.Helper()
	families, err := choose(nil)
	if err != nil {
		tb.Fatal(err)
	}
	all, err := groups(families)
	if err != nil {
		tb.Fatal(err)
	}
	g := row(tb, all, func(g group) bool { return g.k == k })
	return row(tb, g.subjects, func(s subject) bool { return s.Name == name })
}

func TestSplits(t *testing.T) {
	p := smallExperiment(t, 20_000, 1<<13, 11)
	if len(p.splits) < 20 || len(p.loads) != len(parts) || p.loads[p.full].n != capacity(1<<13, 11) {
		t.Fatalf("%d splits, loads %v, the whole one %d", len(p.splits), p.loads, p.full)
	}
	asked := make([]uint8, len(p.keys))
	for i, s := range p.splits {
		used := make([]bool, len(p.keys))
		use := func(keys []int32) {
			for j, key := range keys {
				if used[key] || j > 0 && keys[j-1] >= key {
					t.Fatalf("split %d: key %d is used twice, or is out of order", i, key)
				}
				used[key] = true
			}
		}
		members := 0
		for l, step := range s.steps {
			use(step)
			if members += len(step); members != p.loads[l].n {
				t.Errorf("split %d: %d members at load %d, want %d", i, members, l, p.loads[l].n)
			}
		}
		use(s.queries)
		if len(s.queries) != p.queries || p.queries < minQueries(members) {
			t.Errorf("split %d: %d queries, want %d", i, len(s.queries), p.queries)
		}
		for _, key := range s.queries {
			asked[key]++
		}
		if i > 0 && slices.Equal(s.queries, p.splits[i-1].queries) {
			t.Errorf("split %d is the one before", i)
		}
	}
	if !slices.Equal(asked, p.asked) {
		t.Error("asked does not count the queries")
	}
}

// TestSplitsFitACount: tally counts in a byte how often a key is hit.
func TestSplitsFitACount(t *testing.T) {
	if splits < 20 || splitsFull < splits || splitsFull > math.MaxUint8 {
		t.Errorf("%d and %d splits: use 20 to 255", splits, splitsFull)
	}
}

func TestShape(t *testing.T) {
	for _, keys := range []int{MinKeys, 1500, 5000, 121_570, generatedKeys, generatedKeysFull, MaxKeys} {
		for _, k := range []int{1, 2, 7, 9, 11, 15, 64} {
			for _, full := range []bool{false, true} {
				for _, m := range sizes(keys, k, full) {
					s := newShape(keys, m, k, full)
					most := queriesPerFilter
					if full {
						most = queriesPerFilterFull
					}
					if m < minBits || s.pool > keys || s.queries < min(most, minQueries(s.top())) ||
						s.top()+s.queries > s.pool || s.loads[0].n < 1 || s.top() > maxMembers {
						t.Errorf("%d keys, k = %d, full %v: %+v", keys, k, full, s)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		keys, k int
		full    bool
		want    []uint64
	}{
		{generatedKeys, 11, false, []uint64{1 << 16, 1 << 20}},
		{generatedKeys, 7, false, []uint64{1 << 16, 1 << 20}},
		{generatedKeys, 1, false, []uint64{1 << 16}},
		{generatedKeysFull, 7, true, []uint64{1 << 16, 1 << 20, 1 << 24}},
		{generatedKeysFull, 7, false, []uint64{1 << 16, 1 << 20}},
		{MaxKeys, 1, true, []uint64{1 << 16, 1 << 20}},
		{MinKeys, 1, false, []uint64{1 << 10}},
		{2000, 11, true, []uint64{1 << 14}},
	} {
		if got := sizes(c.keys, c.k, c.full); !slices.Equal(got, c.want) {
			t.Errorf("%d keys, k = %d, full %v: %v, want %v", c.keys, c.k, c.full, got, c.want)
		}
	}
}

// TestGeneratedCorporaFillTheFilters: where families are compared, up to 5/4 of
// the capacity, with as many queries as are wanted.
func TestGeneratedCorporaFillTheFilters(t *testing.T) {
	for _, k := range []int{7, 9, 11} {
		if s := newShape(generatedKeys, 1<<20, k, false); s.queries != queriesPerFilter || len(s.loads) != len(parts) {
			t.Errorf("k = %d: %+v", k, s)
		}
		if s := newShape(generatedKeysFull, 1<<24, k, true); s.queries != queriesPerFilterFull || len(s.loads) != len(parts) {
			t.Errorf("full, k = %d: %+v", k, s)
		}
	}
}

// TestMeasureIsABloomFilter checks what is measured through tables of indices
// against the plain filter that asks the family.
func TestMeasureIsABloomFilter(t *testing.T) {
	p := smallExperiment(t, 6000, 1<<13, 11)
	p.passes = true
	for _, name := range []string{"classic", "digest", "double", "seeded", Ideal} {
		s := subjectNamed(t, name, 11)
		x, err := p.measure(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		ones := make([]uint64, len(p.loads))
		for i, split := range p.splits {
			f, err := s.make(p.seed, p.m)
			if err != nil {
				t.Fatal(err)
			}
			if control, ok := f.(*ideal); ok {
				f = control.withSeed(split.seed)
			}
			filter, err := bloom.New(f)
			if err != nil {
				t.Fatal(err)
			}
			for l, step := range split.steps {
				for _, key := range step {
					filter.Add(p.keys[key])
				}
				ones[l] += filter.SetBits()
				hits := uint64(0)
				for _, key := range split.queries {
					if filter.MayContain(p.keys[key]) {
						hits++
					}
				}
				if t1 := x.byLoad[l]; t1.hits[i] != hits || t1.trials[i] != uint64(p.queries) {
					t.Errorf("%s, split %d, load %d: %d/%d hits, the plain filter has %d/%d", name, i, l, t1.hits[i], t1.trials[i], hits, p.queries)
				}
			}
		}
		if !slices.Equal(ones, x.ones) {
			t.Errorf("%s: set bits %v, of the plain filters %v", name, x.ones, ones)
		}
		for _, t1 := range x.byLoad {
			byUnit := uint64(0)
			for _, hits := range t1.byUnit {
				byUnit += uint64(hits)
			}
			if hits, _ := t1.total(); hits != byUnit {
				t.Errorf("%s: %d hits by key, %d by filter", name, byUnit, hits)
			}
		}
	}
}

func TestFPRRow(t *testing.T) {
	// k·n/m = ln 2: the formula's rate is 2^-k. Half of the bits are set.
	const m = 1 << 20
	n := int(math.Round(m * math.Ln2 / 10))
	counts := &tally{hits: make([]uint64, 20), trials: make([]uint64, 20)}
	for i := range counts.hits {
		counts.hits[i], counts.trials[i] = 40, 1<<13 // 2^-10 · 5·2^3
	}
	r := fprRow(FPRRow{M: m, K: 10, N: n}, counts, nil, 20*m/2)
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("formula", r.Formula, 1.0/1024)
	near("expected fill", r.ExpectedFill, 0.5)
	near("fill", r.Fill, 0.5)
	near("by fill", r.ByFill, 1.0/1024)
	near("rate", r.Rate.Value, 40.0/8192)
	near("effective k", r.EffectiveK.Value, math.Log2(8192.0/40))
	near("its lower limit", r.EffectiveK.Low, -math.Log2(r.Rate.High))
	near("its upper limit", r.EffectiveK.High, -math.Log2(r.Rate.Low))
	if r.Filters != 20 || r.Hits != 800 || r.Trials != 20<<13 {
		t.Errorf("%d filters, %d/%d", r.Filters, r.Hits, r.Trials)
	}
}

func TestZeroHits(t *testing.T) {
	counts := newTally(20, 5)
	for i := range counts.trials {
		counts.trials[i] = 5
	}
	r := fprRow(FPRRow{M: 1024, K: 3, N: 10}, counts, []uint8{20, 20, 20, 20, 20}, 20*100)
	if r.Hits != 0 || r.Rate.Value != 0 || r.Rate.Low != 0 || r.Rate.High <= 0 || r.Rate.High > 0.05 {
		t.Errorf("%+v", r.Rate)
	}
	if want := math.Log(r.Rate.High) / math.Log(r.Fill); r.EffectiveK != (Interval{math.Inf(1), want, math.Inf(1)}) {
		t.Errorf("effective k %+v, want at least %v", r.EffectiveK, want)
	}
}

func TestEffectiveKOfNoEvidence(t *testing.T) {
	for _, fill := range []float64{0, 1} {
		if k := effectiveK(Interval{0.5, 0.4, 0.6}, fill); k != (Interval{math.Inf(1), 0, math.Inf(1)}) {
			t.Errorf("fill %v: %+v", fill, k)
		}
	}
	if k := effectiveK(Interval{1, 0.9, 1}, 0.5); k.Value != 0 || math.Signbit(k.Value) || k.Low != 0 || k.High <= 0 {
		t.Errorf("rate 1: %+v", k)
	}
}

// TestTallyRate compares the limits with sums done by hand.
func TestTallyRate(t *testing.T) {
	// Four filters of 100 trials with 10, 20, 30, 40 hits: the spread is far
	// above the binomial. Σ(hits-25)² is 500, times 4/3, over 400²: a standard
	// error of 0.064550; t of 3 degrees of freedom is 3.182446.
	counts := &tally{hits: []uint64{10, 20, 30, 40}, trials: []uint64{100, 100, 100, 100}}
	got := counts.rate(nil)
	factor := math.Exp(3.182446 * 0.0645497 / 0.25)
	if math.Abs(got.Value-0.25) > 1e-9 || math.Abs(got.Low-0.25/factor) > 1e-6 || math.Abs(got.High-0.25*factor) > 1e-6 {
		t.Errorf("%+v, want 0.25 from %v to %v", got, 0.25/factor, 0.25*factor)
	}
	// The same hits, always of the same tenth of the units: wider still.
	counts.byUnit = make([]uint8, 100)
	for i := range 25 {
		counts.byUnit[i] = 4
	}
	asked := slices.Repeat([]uint8{4}, 100)
	wider := counts.rate(asked)
	if wider.Low >= got.Low || wider.High <= got.High || wider.Value != got.Value {
		t.Errorf("hits of few keys: %+v, of any %+v", wider, got)
	}
	// One filter shows no spread: Clopper-Pearson alone.
	single := &tally{hits: []uint64{25}, trials: []uint64{100}}
	low, high := clopperPearson(25, 100)
	if got := single.rate(nil); got != (Interval{0.25, low, high}) {
		t.Errorf("one filter: %+v, want %v to %v", got, low, high)
	}
	if got := (&tally{}).rate(nil); got != (Interval{}) {
		t.Errorf("no filter: %+v", got)
	}
}

// TestIntervalsHoldWhatTheyPromise measures double hashing under many keys: each
// is one fixed function, which all splits share, and yet the limits are to hold
// the formula's rate for about 95% of them. By the spread between the filters
// alone they do not.
func TestIntervalsHoldWhatTheyPromise(t *testing.T) {
	runs := 50
	if testing.Short() {
		runs = 20
	}
	p := smallExperiment(t, 20_000, 1<<13, 1)
	random := rand.New(rand.NewPCG(5, 6))
	holds := 0
	for range runs {
		var key [hashfamily.KeySize]byte
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		x, err := p.measure(context.Background(), subject{k: 1, make: func(_, m uint64) (hashfamily.Family, error) {
			return hashfamily.NewDouble(m, 1, key[:])
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := x.rows(p, Subject{})[p.full]
		if r.Rate.Low <= r.Formula && r.Formula <= r.Rate.High {
			holds++
		}
	}
	t.Logf("the interval holds the formula's rate for %d of %d keys", holds, runs)
	if holds*100 < runs*88 {
		t.Errorf("the interval holds the formula's rate for %d of %d keys, want about 95%%", holds, runs)
	}
}

// BenchmarkMeasure shows what it saves to hash each key once, and to ask for a
// query once where the fullest filter rules it out, against filters that are
// asked at each load.
func BenchmarkMeasure(b *testing.B) {
	p := smallExperiment(b, 60_000, 1<<16, 11)
	s := subjectNamed(b, "classic", 11)
	b.Run("tables", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.measure(context.Background(), s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("filters", func(b *testing.B) {
		f, err := s.make(0, p.m)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for _, split := range p.splits {
				filter, err := bloom.New(f)
				if err != nil {
					b.Fatal(err)
				}
				for _, step := range split.steps {
					for _, key := range step {
						filter.Add(p.keys[key])
					}
					for _, key := range split.queries {
						filter.MayContain(p.keys[key])
					}
				}
			}
		}
	})
}
