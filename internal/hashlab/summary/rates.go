package summary

import (
	"cmp"
	"fmt"
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

	rows     int                   // with enough hits
	full     []hashlab.FPRRow      // of the fullest filters, one a corpus
	together hashlab.Equivalence   // with the formula, over all corpora
	apart    []hashlab.Equivalence // over each corpus
	worst    hashlab.FPRRow        // of the rows whose limits are above the formula, the one with most times its rate
}

// times returns how many times the formula's the measured rate is.
func times(f hashlab.FPRRow) float64 { return f.Rate.Value / f.Formula }

// enough reports whether a row has enough hits for a sentence.
func enough(f hashlab.FPRRow) bool { return f.Hits >= enoughHits && f.Formula > 0 }

// allFamilyRates returns the families of the report, in its order.
func allFamilyRates(r *hashlab.Report) []familyRates {
	var all []familyRates
	same := hashlab.Equivalences(hashlab.Filter(r.FPR, func(f hashlab.FPRRow) bool { return !f.FullSize }))
	together := Together(same)
	rows := hashlab.Filter(r.FPR, func(f hashlab.FPRRow) bool { return f.Kind == hashlab.KindFamily })
	for _, g := range hashlab.Groups(rows, func(f hashlab.FPRRow) family { return family{f.Name, f.K} }) {
		c := familyRates{label: Label(r, g[0].Name, g[0].K), k: g[0].K}
		if i := slices.IndexFunc(together, func(e hashlab.Equivalence) bool { return e.Subject == g[0].Subject && e.K == c.k }); i >= 0 {
			c.together, c.apart = together[i], Apart(same, together[i])
		}
		scaled := hashlab.Filter(g, func(f hashlab.FPRRow) bool { return !f.FullSize && enough(f) })
		for _, f := range scaled {
			c.rows++
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

// Together returns for each subject the comparison with the formula over all
// corpora, or over the only one.
func Together(all []hashlab.Equivalence) []hashlab.Equivalence {
	var some []hashlab.Equivalence
	for _, g := range hashlab.Groups(all, func(e hashlab.Equivalence) family { return family{e.Kind + " " + e.Name, e.K} }) {
		some = append(some, g[len(g)-1])
	}
	return some
}

// Apart returns the comparisons of one subject over single corpora.
func Apart(all []hashlab.Equivalence, equivalence hashlab.Equivalence) []hashlab.Equivalence {
	return hashlab.Filter(all, func(e hashlab.Equivalence) bool {
		return e.Subject == equivalence.Subject && e.K == equivalence.K && e.Corpus != ""
	})
}

// rates compares each family's rate with the formula.
func (s *summary) rates() {
	var good, open, unknown []string
	var ratios Range
	apart := make(map[string]int) // by verdict
	for _, c := range allFamilyRates(s.report) {
		switch e := c.together; {
		case c.rows == 0:
			unknown = append(unknown, c.label)
		case e.Verdict == hashlab.Equivalent:
			good = append(good, c.label)
			ratios.Add(e.Ratio.Low, "")
			ratios.Add(e.Ratio.High, "")
			for _, equivalence := range c.apart {
				apart[equivalence.Verdict]++
			}
		case e.Verdict == hashlab.Open:
			open = append(open, fmt.Sprintf("%s (%s)", c.label, format.Equivalence(e)))
		default:
			s.say("expect-fpr:"+c.label, true, "%s: %s", c.label, c.expectation())
		}
	}
	s.asFormula(good, ratios, apart)
	if len(open) > 0 {
		s.say("formula-open", false, "%s: not shown to differ from the formula by more than %.0f%%, and not shown to agree with it (in brackets the 90%% interval of their ratio).",
			Join(open), 100*hashlab.EquivalenceMargin)
	}
	if len(unknown) > 0 {
		s.say("formula", false, "%s: no row has the %d false positives that a statement about the rate needs; the tables have the limits.",
			Join(unknown), enoughHits)
	}
}

// asFormula says which families have the formula's rate, and how far that is shown.
func (s *summary) asFormula(good []string, ratios Range, apart map[string]int) {
	if len(good) == 0 {
		return
	}
	sentence := fmt.Sprintf("%s: expect what the formula says, within %.0f%%. Of the false positives that it predicts, the filters had %.2f to %.2f times as many (90%% intervals; two one-sided tests).",
		Join(good), 100*hashlab.EquivalenceMargin, ratios.Low, ratios.High)
	switch n, equal := apart[hashlab.Equivalent]+apart[hashlab.Open], apart[hashlab.Equivalent]; {
	case n == len(good): // only one corpus
	case equal == n:
		sentence += " Each corpus alone shows the same for each family."
	default:
		sentence += fmt.Sprintf(" Of the %s of a family and a corpus %d show the same alone; the intervals of the others are too wide for it, and none shows a larger difference.",
			text.Count(n, "pair", "pairs"), equal)
	}
	s.say("formula", true, "%s", sentence)
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
