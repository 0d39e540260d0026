package hashlab

import (
	"math"
	"testing"
)

// rateRow returns a row with a rate of so many times the formula's and a relative
// standard error.
func rateRow(corpus, name string, n int, times, deviation float64) FPRRow {
	const formula, trials = 0.002, 1_000_000
	rate := times * formula
	factor := math.Exp(2.0930240544 * deviation) // Student's t of 19 degrees of freedom
	return FPRRow{Corpus: corpus, Subject: Subject{name, KindFamily}, M: 1 << 16, K: 11, N: n, Filters: 20, Trials: trials, Formula: formula,
		Hits: uint64(math.Round(rate * trials)), Rate: Interval{rate, rate / factor, rate * factor}}
}

// TestEquivalences: the same is claimed only if it is shown.
func TestEquivalences(t *testing.T) {
	for _, tt := range []struct {
		name string
		rows []FPRRow
		want string // of the last row
		low  float64
		high float64
	}{
		{"precise and near", []FPRRow{rateRow("a", "f", 9, 1.01, 0.01)}, Equivalent, 0.993, 1.028},
		{"contains 1, but is wide", []FPRRow{rateRow("a", "f", 9, 1.01, 0.04)}, Open, 0.942, 1.083},
		{"precise, and just inside", []FPRRow{rateRow("a", "f", 9, 1.02, 0.01)}, Equivalent, 1.002, 1.038},
		{"precise, and neither", []FPRRow{rateRow("a", "f", 9, 1.045, 0.01)}, Open, 1.027, 1.064},
		{"precise and far", []FPRRow{rateRow("a", "f", 9, 1.2, 0.01)}, Differs, 1.179, 1.221},
		{"precise and far below", []FPRRow{rateRow("a", "f", 9, 0.8, 0.01)}, Differs, 0.786, 0.814},
		{"wide and far", []FPRRow{rateRow("a", "f", 9, 1.2, 0.15)}, Open, 0.925, 1.556},
		{"differs in emptier filters only", []FPRRow{rateRow("a", "f", 9, 1.01, 0.01), rateRow("a", "f", 4, 3, 0.05)}, Differs, 0.993, 1.028},
		{"two corpora together are precise", []FPRRow{rateRow("a", "f", 9, 1.02, 0.03), rateRow("b", "f", 9, 0.98, 0.03)}, Equivalent, 0.964, 1.038},
		{"one of two corpora differs", []FPRRow{rateRow("a", "f", 9, 1.2, 0.01), rateRow("b", "f", 9, 0.8, 0.01)}, Differs, 0.987, 1.013},
		{"a large difference behind a more certain small one", []FPRRow{rateRow("a", "f", 9, 1.04, 0.001), rateRow("b", "f", 9, 1.2, 0.02)}, Differs, 1.099, 1.141},
		{"no hits, and twenty are expected", []FPRRow{func() FPRRow {
			f := rateRow("a", "f", 9, 1, 0.01)
			f.Hits, f.Rate, f.Formula = 0, Interval{0, 0, 3e-6}, 20.0/1e6
			return f
		}()}, Differs, 0, math.Inf(1)},
	} {
		all := Equivalences(tt.rows)
		e := all[len(all)-1]
		if e.Verdict != tt.want || math.Abs(e.Ratio.Low-tt.low) > 0.002 || e.Ratio.High != tt.high && math.Abs(e.Ratio.High-tt.high) > 0.002 {
			t.Errorf("%s: %+v, want %s of %g to %g", tt.name, e, tt.want, tt.low, tt.high)
		}
		if inside := e.Ratio.Low > 1/1.05 && e.Ratio.High < 1.05; inside != (e.PEquivalent < 0.05) {
			t.Errorf("%s: p = %g, but the interval is %g to %g", tt.name, e.PEquivalent, e.Ratio.Low, e.Ratio.High)
		}
	}
	few := rateRow("a", "f", 9, 1, 0.01)
	few.Hits, few.Formula = 9, 9e-6
	if all := Equivalences([]FPRRow{few}); len(all) != 0 {
		t.Errorf("of nine hits: %+v", all)
	}
}

// TestEquivalenceIsCorrected: of many subjects that follow the formula none is
// called different by chance, and one that does differ is found among them.
func TestEquivalenceIsCorrected(t *testing.T) {
	random := stream(1, "equivalence")
	var rows []FPRRow
	for i := range 400 {
		// Outside of the margin and p < 0.05 for about every twentieth.
		rows = append(rows, rateRow(string(rune('A'+i%20))+"x", string(rune('a'+i/20))+"y", 9, math.Exp(0.05*random.NormFloat64()), 0.05))
	}
	rows = append(rows, rateRow("Ax", "planted", 9, 1.5, 0.05))
	for _, e := range Equivalences(rows) {
		if (e.Verdict == Differs) != (e.Name == "planted") {
			t.Errorf("%+v", e)
		}
	}
}

// TestEquivalenceOfMeasured: in a small run BP differs, and nothing ideal does.
func TestEquivalenceOfMeasured(t *testing.T) {
	r := untilSpeed(t, Options{Families: []string{"classic:RS,BP", "double"}, Corpora: smallCorpora(t), Seed: 1})
	found := false
	for _, e := range r.Equivalence {
		if e.Verdict == Differs {
			found = found || e.Name == "BP" && e.K == 1
			if e.Name == Ideal || e.Name == XXH3 || e.Name == "double" {
				t.Errorf("%+v", e)
			}
		}
	}
	if !found {
		t.Error("BP is not found to differ")
	}
}
