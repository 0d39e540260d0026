package hashlab

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// EquivalenceMargin is the part by which a rate may differ from the formula's and
	// still be called the same: from 1/1.05 to 1.05 times.
	EquivalenceMargin = 0.05

	// leastHits is the number of false positives, measured or predicted, that a row
	// needs to be compared with the formula.
	leastHits = 10
)

// Verdicts about a rate and the formula's.
const (
	Equivalent = "equivalent" // shown to be the same, within the margin
	Differs    = "differs"    // shown to differ by more than the margin
	Open       = "open"       // neither is shown
)

// Equivalences compares each subject with the formula, over each corpus and over all
// together. That an interval contains the formula's rate does not show that the rates
// are the same: a wide one contains many. So it makes two one-sided tests (D. J.
// Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987): the rates
// are called the same if the 90% interval of their ratio lies inside the margin, which
// is wrong in at most 5% of the cases.
//
// The ratio is of the fullest filters of each size, which have the most hits. Emptier
// ones can only show a difference: functions that are less than independent are far
// above the formula there.
func Equivalences(rows []FPRRow) []Equivalence {
	rows = Filter(rows, func(f FPRRow) bool {
		return max(f.Formula*float64(f.Trials), float64(f.Hits)) >= leastHits && f.Filters > 1
	})
	type subjectK struct {
		Subject
		k int
	}
	var all []Equivalence
	for _, g := range Groups(rows, func(f FPRRow) subjectK { return subjectK{f.Subject, f.K} }) {
		var parts []ratio
		start := len(all)
		for _, c := range Groups(g, func(f FPRRow) string { return f.Corpus }) {
			own := fullestRatios(c)
			e := Equivalence{Corpus: c[0].Corpus, Subject: c[0].Subject, K: c[0].K}
			e.compare(own)
			var differences []difference
			for _, f := range c {
				r := newRatio(f)
				differences = append(differences, difference{r.value, r.p()})
			}
			e.difference(differences)
			all, parts = append(all, e), append(parts, own...)
		}
		if corpora := all[start:]; len(corpora) > 1 {
			e := Equivalence{Subject: g[0].Subject, K: g[0].K}
			e.compare(parts)
			var differences []difference
			for _, c := range corpora {
				differences = append(differences, difference{c.Worst, c.PDiffers})
			}
			e.difference(differences)
			all = append(all, e)
		}
	}
	judge(all)
	return all
}

// outside reports whether a ratio is not within the margin.
func outside(ratio float64) bool {
	return ratio < 1/(1+EquivalenceMargin) || ratio > 1+EquivalenceMargin
}

// difference is a ratio with the probability that chance gives one as far from 1.
type difference struct{ ratio, p float64 }

// difference sets the least probable one of several, if possible one outside of the
// margin, with its p-value as one of so many (Bonferroni).
func (e *Equivalence) difference(all []difference) {
	far := Filter(all, func(d difference) bool { return outside(d.ratio) })
	if len(far) == 0 {
		far = all
	}
	least := slices.MinFunc(far, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.p, b.p), cmp.Compare(math.Abs(math.Log(b.ratio)), math.Abs(math.Log(a.ratio))))
	})
	e.Worst, e.PDiffers = least.ratio, min(1, least.p*float64(len(all)))
}

// judge corrects the p-values of differences and sets the verdicts. The rows over all
// corpora are another question, corrected on their own.
func judge(all []Equivalence) {
	for _, together := range []bool{false, true} {
		var p []float64
		for _, e := range all {
			if (e.Corpus == "") == together {
				p = append(p, e.PDiffers)
			}
		}
		p = holm(p)
		for i := range all {
			e := &all[i]
			if (e.Corpus == "") != together {
				continue
			}
			e.PDiffers, p = p[0], p[1:]
			switch {
			case e.PDiffers < alpha && outside(e.Worst):
				e.Verdict = Differs
			case e.PEquivalent < alpha:
				e.Verdict = Equivalent
			default:
				e.Verdict = Open
			}
		}
	}
}

// compare sets the ratio of all hits to those that the formula predicts, with its
// limits of 90% confidence, and the p-value of the two tests.
func (e *Equivalence) compare(parts []ratio) {
	if len(parts) == 0 {
		e.Ratio, e.PEquivalent = Interval{math.Inf(1), 0, math.Inf(1)}, 1
		return
	}
	square, filters := 0.0, parts[0].filters
	for _, r := range parts {
		e.Hits += r.hits
		e.Expected += r.expected
		d := float64(r.hits) * r.deviation
		square += d * d
		filters = min(filters, r.filters)
	}
	whole := ratio{value: float64(e.Hits) / e.Expected, deviation: math.Sqrt(square) / float64(e.Hits), filters: filters}
	student := whole.student()
	factor := math.Exp(student.Quantile(1-alpha) * whole.deviation)
	e.Ratio = Interval{whole.value, whole.value / factor, whole.value * factor}
	// The larger p-value of the two tests decides.
	above := (math.Log(whole.value) + math.Log1p(EquivalenceMargin)) / whole.deviation
	below := (math.Log1p(EquivalenceMargin) - math.Log(whole.value)) / whole.deviation
	e.PEquivalent = student.CDF(-min(above, below))
}

// ratio is a rate as a multiple of the formula's.
type ratio struct {
	hits      uint64
	expected  float64
	value     float64
	deviation float64 // standard error of its logarithm
	filters   int
}

// newRatio takes the standard error from the limits of the rate, which cover the
// spread between filters and between keys.
func newRatio(f FPRRow) ratio {
	r := ratio{hits: f.Hits, expected: f.Formula * float64(f.Trials), value: f.Rate.Value / f.Formula, filters: f.Filters}
	if f.Hits > 0 {
		wider := max(math.Log(f.Rate.High/f.Rate.Value), math.Log(f.Rate.Value/f.Rate.Low))
		r.deviation = wider / r.student().Quantile(1-alpha/2)
	}
	return r
}

func (r ratio) student() distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(r.filters - 1)}
}

// p returns the probability of a ratio at least as far from 1 if the formula holds.
func (r ratio) p() float64 {
	switch {
	case r.hits == 0:
		return min(1, 2*math.Exp(-r.expected))
	case r.deviation == 0:
		return 1
	}
	return 2 * r.student().CDF(-math.Abs(math.Log(r.value))/r.deviation)
}

// fullestRatios returns the ratio of the fullest filters of each size in which the
// formula predicts enough hits and there are some.
func fullestRatios(rows []FPRRow) []ratio {
	rows = Filter(rows, func(f FPRRow) bool { return f.Hits > 0 && f.Formula*float64(f.Trials) >= leastHits })
	var all []ratio
	for _, g := range Groups(rows, func(f FPRRow) uint64 { return f.M }) {
		all = append(all, newRatio(slices.MaxFunc(g, func(a, b FPRRow) int { return cmp.Compare(a.N, b.N) })))
	}
	return all
}
