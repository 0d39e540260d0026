package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"spamgate/blocklist/bloom"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/text"
)

// control says whether the ideal control had the formula's rate.
func (s *summary) control() {
	n, misses := comparisons(s.report.FPR, func(f hashlab.FPRRow) bool { return f.Name == hashlab.Ideal })
	if n == 0 {
		return
	}
	holds := chanceOfMisses(n, misses) >= surprise
	least := n // of the comparisons that must agree
	for least > 0 && chanceOfMisses(n, n-least+1) >= surprise {
		least--
	}
	verdict := fmt.Sprintf("By chance one in twenty misses; fewer than %d would be a reason not to trust this run.", least)
	switch {
	case least == 0:
		verdict = "By chance one in twenty misses; so few comparisons cannot show an error."
	case !holds:
		verdict = fmt.Sprintf("By chance only one in twenty misses, so that at least %d should agree. Don't trust this run's rates.", least)
	}
	s.say("control", holds, "The laboratory itself: the ideal control's 95%% interval holds the textbook formula's rate in %d of %s (each corpus, k and size of filter is one). %s",
		n-misses, text.Count(n, "comparison", "comparisons"), verdict)
}

// comparisons counts the comparisons of matching rows with the formula, and those
// whose limits miss it. Each corpus, k and size of filter is one comparison, made
// with the fullest of the rows in which the formula predicts enough hits: the
// other rows are of the same filters with fewer keys, and miss together with it.
func comparisons(rows []hashlab.FPRRow, match func(hashlab.FPRRow) bool) (n, misses int) {
	type filter struct {
		corpus string
		hashlab.Subject
		k int
		m uint64
	}
	enough := hashlab.Filter(rows, func(f hashlab.FPRRow) bool {
		return match(f) && f.Formula*float64(f.Trials) >= enoughExpected
	})
	for _, g := range hashlab.Groups(enough, func(f hashlab.FPRRow) filter { return filter{f.Corpus, f.Subject, f.K, f.M} }) {
		f := slices.MaxFunc(g, func(a, b hashlab.FPRRow) int { return cmp.Compare(a.N, b.N) })
		n++
		if f.Formula < f.Rate.Low || f.Formula > f.Rate.High {
			misses++
		}
	}
	return n, misses
}

// familyRates is what the rows say of a family with k functions.
type familyRates struct {
	label string
	k     int

	rows                int              // with enough hits
	hits, expected      float64          // false positives in them, and those that the formula predicts
	comparisons, misses int              // see comparisons
	full                []hashlab.FPRRow // of the fullest filters, one a corpus
	worst               hashlab.FPRRow   // of the rows whose limits are above the formula, the one with most times its rate
}

// times returns how many times the formula's the measured rate is.
func times(f hashlab.FPRRow) float64 { return f.Rate.Value / f.Formula }

// enough reports whether a row has enough hits for a sentence.
func enough(f hashlab.FPRRow) bool { return f.Hits >= enoughHits && f.Formula > 0 }

// allFamilyRates returns the families of the report, in its order.
func allFamilyRates(r *hashlab.Report) []familyRates {
	var all []familyRates
	rows := hashlab.Filter(r.FPR, func(f hashlab.FPRRow) bool { return f.Kind == hashlab.KindFamily })
	for _, g := range hashlab.Groups(rows, func(f hashlab.FPRRow) family { return family{f.Name, f.K} }) {
		c := familyRates{label: Label(r, g[0].Name, g[0].K), k: g[0].K}
		scaled := hashlab.Filter(g, func(f hashlab.FPRRow) bool { return !f.FullSize })
		c.comparisons, c.misses = comparisons(scaled, func(hashlab.FPRRow) bool { return true })
		scaled = hashlab.Filter(scaled, enough)
		for _, f := range scaled {
			c.rows++
			c.hits += float64(f.Hits)
			c.expected += f.Formula * float64(f.Trials)
			if f.Rate.Low > f.Formula && (c.worst.Formula == 0 || times(f) > times(c.worst)) {
				c.worst = f
			}
		}
		for _, g := range hashlab.Groups(scaled, func(f hashlab.FPRRow) string { return f.Corpus }) {
			c.full = append(c.full, Fullest(g))
		}
		all = append(all, c)
	}
	return all
}

// Fullest returns the row with the largest load; of equal loads that of the
// larger filter.
func Fullest(rows []hashlab.FPRRow) hashlab.FPRRow {
	most := rows[0]
	for _, f := range rows[1:] {
		if fuller(f, most) {
			most = f
		}
	}
	return most
}

// fuller compares loads, k·n/m, which rounding may move a little.
func fuller(a, b hashlab.FPRRow) bool {
	x, y := float64(a.N)/float64(a.M), float64(b.N)/float64(b.M)
	return x > y*1.01 || x > y*0.99 && a.M > b.M
}

// asFormula reports whether the family has the formula's rate: its limits miss
// the formula as rarely as chance does, all its false positives together are
// those predicted within a tenth, and it acts like as many functions as it has.
// (Fewer functions, which set fewer bits, come near the formula in full filters
// and far above it in emptier ones.)
func (c *familyRates) asFormula() bool {
	const tenth = 0.1
	return chanceOfMisses(c.comparisons, c.misses) >= surprise && math.Abs(c.hits/c.expected-1) <= tenth &&
		!slices.ContainsFunc(c.full, func(f hashlab.FPRRow) bool { return math.Abs(f.EffectiveK.Value/float64(c.k)-1) > tenth })
}

// expectation says what to expect of a family that differs from the formula: over
// the first corpus, over the worst one, and in emptier filters if those are worse.
func (c *familyRates) expectation() string {
	first := c.full[0]
	act := "act"
	if c.k == 1 {
		act = "acts"
	}
	sentence := fmt.Sprintf("over %s expect a false positive rate of %s at %.3g bits a key, %s times the formula's: its %s %s like %.2f ideal ones",
		text.Printable(first.Corpus), format.Interval(first.Rate, first.Hits), float64(first.M)/float64(first.N), format.Factor(times(first)),
		text.Count(c.k, "function", "functions"), act, first.EffectiveK.Value)
	if first.Fill < 0.97*first.ExpectedFill {
		sentence += fmt.Sprintf(", in filters that are %.0f%% full instead of %.0f%%", 100*first.Fill, 100*first.ExpectedFill)
	}
	sentence += "."
	worst := slices.MaxFunc(c.full, func(a, b hashlab.FPRRow) int { return cmp.Compare(times(a), times(b)) })
	if len(c.full) > 1 {
		sentence += fmt.Sprintf(" Worst over %s: %s times the formula's, like %.2f functions.", text.Printable(worst.Corpus), format.Factor(times(worst)), worst.EffectiveK.Value)
	}
	if c.worst.Formula > 0 && times(c.worst) > times(worst)*1.01 {
		sentence += fmt.Sprintf(" Emptier filters err less often, but up to %s times as often as the formula says (%s, %.3g bits a key).",
			format.Factor(times(c.worst)), text.Printable(c.worst.Corpus), float64(c.worst.M)/float64(c.worst.N))
	}
	return sentence
}

// rates compares each family's rate with the formula.
func (s *summary) rates() {
	var good, unknown []string
	var hits, expected float64
	for _, c := range allFamilyRates(s.report) {
		switch {
		case c.rows == 0:
			unknown = append(unknown, c.label)
		case c.asFormula():
			good = append(good, c.label)
			hits, expected = hits+c.hits, expected+c.expected
		default:
			s.say("expect-fpr:"+c.label, true, "%s: %s", c.label, c.expectation())
		}
	}
	if len(good) > 0 {
		s.say("formula", true, "%s: expect what the formula says. The filters had %.2f times the false positives that it predicts.", Join(good), hits/expected)
	}
	if len(unknown) > 0 {
		s.say("formula", false, "%s: no row has the %d false positives that a statement about the rate needs; the tables have the limits.",
			Join(unknown), enoughHits)
	}
}

// fullSize gives the rates that were measured in filters of the daemon's size.
func (s *summary) fullSize() {
	rows := hashlab.Filter(s.report.FPR, func(f hashlab.FPRRow) bool { return f.Kind == hashlab.KindFamily && f.FullSize && enough(f) })
	for _, g := range hashlab.Groups(rows, func(f hashlab.FPRRow) string { return f.Name }) {
		var parts []string
		for _, f := range g {
			parts = append(parts, fmt.Sprintf("a rate of %s with %s keys, %s times the formula's", format.Rate(f.Rate.Value), text.Number(f.N), format.Ratio(f)))
		}
		s.say("full-size:"+g[0].Name, true, "%s measured at full size, %s bits: %s.", g[0].Name, format.Bits(bloom.ClassicBits), strings.Join(parts, "; "))
	}
}

// scope says what rates in small filters do not tell about a larger one: there an
// index is a hash's low bits, and the bits above them may be better or worse.
func (s *summary) scope() {
	most, classic, full := uint64(0), false, false
	for _, f := range s.report.FPR {
		classic = classic || f.Kind == hashlab.KindFamily && strings.HasPrefix(f.Name, "classic")
		full = full || f.FullSize
		most = max(most, f.M)
	}
	if classic && !full && most < bloom.ClassicBits {
		s.say("scope", true, "These rates are of filters of at most %s bits, where an index is the low bits of a hash. They don't predict those of the daemon's classic filter of %s bits, which --full measures.",
			format.Bits(most), format.Bits(bloom.ClassicBits))
	}
}
