package hashlab_test

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"spamgate/internal/disposable"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/render"
	"spamgate/internal/hashlab/summary"
)

// TestCompare is the comparison as a test: it measures the laboratory's own
// choice of families over the real list, holds what the documentation says of
// them, and prints the table (with -v). The run takes a part of the list and
// does without the speeds; in full size it is the default one with one corpus.
//
//	SPAMGATE_E2E_FULL=1 go test ./internal/hashlab -run Compare -v
func TestCompare(t *testing.T) {
	options := hashlab.Options{Seed: 1, Corpora: []*hashlab.Corpus{{Name: "real-list", What: "domains of throw-away mail providers", Keys: disposable.Domains()}}}
	var r *hashlab.Report
	if os.Getenv("SPAMGATE_E2E_FULL") == "" {
		options.Corpora[0].Keys = options.Corpora[0].Keys[:30_000]
		r = untilSpeed(t, options)
	} else {
		var err error
		if r, err = hashlab.Run(context.Background(), options); err != nil {
			t.Fatal(err)
		}
	}
	r.Summary = summary.Of(r)
	f := findings{report: r}
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"PJW is ELF", f.pjwIsELF},
		{"BP collapses", f.bpCollapses},
		{"the ideal control keeps to the formula", f.idealKeepsToTheFormula},
		{"classic acts like nine functions", f.classicActsLikeNine},
		{"what a keyed hash gives is the formula's rate", f.keyedIsIdeal},
		{"a message is at risk more often than a key", f.messages},
		{"the summary says so", f.summary},
	} {
		t.Run(c.name, c.test)
	}
	var table strings.Builder
	if err := render.Text(&table, r, render.TextWidth); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// untilSpeed returns a report with all numbers that depend on the manifest alone: it
// interrupts the run when the speeds begin.
func untilSpeed(tb testing.TB, o hashlab.Options) *hashlab.Report {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Progress = func(_ float64, what string) {
		if what == "speed" {
			cancel()
		}
	}
	r, err := hashlab.Run(ctx, o)
	if err != nil {
		tb.Fatal(err)
	}
	if !r.Interrupted {
		tb.Fatal("the run did not come to the speeds")
	}
	return r
}

// row returns the only row that is wanted.
func row[Row any](tb testing.TB, rows []Row, wanted func(Row) bool) Row {
	tb.Helper()
	some := hashlab.Filter(rows, wanted)
	if len(some) != 1 {
		tb.Fatalf("%d of %d rows are wanted, not one", len(some), len(rows))
	}
	return some[0]
}

// findings checks a report.
type findings struct{ report *hashlab.Report }

// rates returns the subject's rates at the full capacity, one for each size.
func (f findings) rates(tb testing.TB, name string, k int) []hashlab.FPRRow {
	tb.Helper()
	var rows []hashlab.FPRRow
	for _, r := range f.report.FPR {
		if r.Name == name && r.K == k && r.Load == 1 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		tb.Fatalf("no rate of %s with k = %d", name, k)
	}
	return rows
}

// pass returns the pass rate of a function in a family's filter.
func (f findings) pass(tb testing.TB, family, hash string) hashlab.PassRow {
	tb.Helper()
	return row(tb, f.report.PassRates, func(r hashlab.PassRow) bool { return r.Family == family && r.Hash == hash })
}

func (f findings) pjwIsELF(t *testing.T) {
	pjw, elf := f.rates(t, "PJW", 1), f.rates(t, "ELF", 1)
	for i := range pjw {
		if pjw[i].Hits != elf[i].Hits || pjw[i].Fill != elf[i].Fill || pjw[i].Hits == 0 {
			t.Errorf("alone: PJW %d hits at fill %v, ELF %d at %v", pjw[i].Hits, pjw[i].Fill, elf[i].Hits, elf[i].Fill)
		}
	}
	if p, e := f.pass(t, "classic", "PJW"), f.pass(t, "classic", "ELF"); p.Hits != e.Hits {
		t.Errorf("in the family: PJW passes %d times, ELF %d", p.Hits, e.Hits)
	}
	a := row(t, f.report.Agreement, func(a hashlab.Agreement) bool { return a.Family == "classic" })
	for i, x := range a.Names {
		for j, y := range a.Names {
			single := i == j || x == "PJW" && y == "ELF" || x == "ELF" && y == "PJW"
			if (a.Same[i][j] == 1) != single || (a.Kappa[i][j] > 0.9) != single {
				t.Errorf("%s and %s: the same index on %v of the keys, kappa %v", x, y, a.Same[i][j], a.Kappa[i][j])
			}
		}
	}
}

func (f findings) bpCollapses(t *testing.T) {
	for _, r := range f.rates(t, "BP", 1) {
		if r.Rate.Low < 0.95 || r.Fill > 0.02 || r.EffectiveK.High > 0.05 {
			t.Errorf("alone: rate %+v at fill %v, effective k %+v", r.Rate, r.Fill, r.EffectiveK)
		}
	}
	if p := f.pass(t, "classic", "BP"); p.Rate.Low < 0.95 {
		t.Errorf("in the family BP passes %+v", p.Rate)
	}
	c := row(t, f.report.Collisions, func(c hashlab.Collision) bool { return c.Name == "BP" && c.Bits == 28 })
	if c.Distinct > c.Keys/5 {
		t.Errorf("modulo 2^28 BP has %d values of %d keys", c.Distinct, c.Keys)
	}
}

// idealKeepsToTheFormula looks at all rates of the ideal control at capacity:
// each interval misses the formula with a probability of 5%.
func (f findings) idealKeepsToTheFormula(t *testing.T) {
	misses, rows := 0, 0
	for _, k := range []int{1, 7, 9, 11} {
		for _, r := range f.rates(t, hashlab.Ideal, k) {
			rows++
			if r.Formula < r.Rate.Low || r.Formula > r.Rate.High {
				misses++
				t.Logf("%d bits, k = %d: %v is outside %+v", r.M, k, r.Formula, r.Rate)
			}
			if math.Abs(r.Fill/r.ExpectedFill-1) > 0.01 {
				t.Errorf("%d bits, k = %d: fill %v, expected %v", r.M, k, r.Fill, r.ExpectedFill)
			}
		}
	}
	if misses > 1 {
		t.Errorf("the formula is outside the ideal control's interval in %d of %d rows", misses, rows)
	}
}

// classicActsLikeNine: far from eleven, and without the two idle functions
// the nine others do as well as the eleven.
func (f findings) classicActsLikeNine(t *testing.T) {
	for _, r := range f.rates(t, "classic", 11) {
		if r.EffectiveK.Value < 8 || r.EffectiveK.High > 10 || r.Rate.Low < r.Formula {
			t.Errorf("classic, %d bits: effective k %+v, rate %+v, formula %v", r.M, r.EffectiveK, r.Rate, r.Formula)
		}
	}
	for _, r := range f.rates(t, "classic9", 9) {
		if r.EffectiveK.Value < 8 || r.EffectiveK.High > 9.5 {
			t.Errorf("classic9, %d bits: effective k %+v", r.M, r.EffectiveK)
		}
	}
}

// keyedIsIdeal: today's hashes are told from the ideal ones by no more than the
// intervals' width.
func (f findings) keyedIsIdeal(t *testing.T) {
	for _, name := range []string{"double", "double:murmur3", "seeded", "digest", hashlab.XXH3} {
		for _, r := range f.rates(t, name, 11) {
			if math.Abs(r.EffectiveK.Value-11) > 0.5 || r.Rate.Low > 1.15*r.Formula || r.Rate.High < r.Formula/1.15 {
				t.Errorf("%s, %d bits: effective k %+v, rate %+v, formula %v", name, r.M, r.EffectiveK, r.Rate, r.Formula)
			}
		}
	}
}

// messages: a message has several keys, each of which may be wrong; but some
// keys are in most messages ("com"), and are wrong for all of them or none.
func (f findings) messages(t *testing.T) {
	for _, k := range []int{7, 9, 11} {
		r := row(t, f.report.Messages, func(r hashlab.MessageRow) bool { return r.Name == hashlab.Ideal && r.K == k })
		perKey := f.rates(t, hashlab.Ideal, k)[0].Rate.Value
		if r.KeysAMail < 6 || r.Rate.Value < 2*perKey || r.Rate.Low > 2*r.FromPerKey {
			t.Errorf("k = %d: rate per message %+v with %v keys, per key %v", k, r.Rate, r.KeysAMail, perKey)
		}
	}
}

// summary holds that the sentences say what the tests above found.
func (f findings) summary(t *testing.T) {
	for _, name := range []string{"control", "expect-fpr:classic", "expect-fpr:classic9", "formula", "carry:classic", "pjw-is-elf", "bp-collapse", "messages"} {
		s := row(t, f.report.Summary, func(s hashlab.Finding) bool { return s.Name == name })
		if !s.Holds {
			t.Errorf("%s: %s", name, s.Text)
		}
	}
}
