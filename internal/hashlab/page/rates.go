package page

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/text"
)

// line identifies the subject of a picture of rates: a family or control with its
// k, over all corpora.
type line struct {
	hashlab.Subject
	k int
}

func (l line) String() string { return fmt.Sprintf("%s, k = %d", l.Name, l.k) }

func lineOf(f hashlab.FPRRow) line { return line{f.Subject, f.K} }

func corpusOf(f hashlab.FPRRow) string { return f.Corpus }

// lines returns those of the rows, without single hashes: with k = 1 the rate is
// the fill, which another picture shows.
func lines(rows []hashlab.FPRRow) []line {
	all := hashlab.Distinct(hashlab.Filter(rows, func(f hashlab.FPRRow) bool { return f.Kind != hashlab.KindHash && f.K > 1 }), lineOf)
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(rank(a.Subject), rank(b.Subject)) })
	return all
}

// rank orders subjects: families, hashes, controls.
func rank(s hashlab.Subject) int {
	return slices.Index([]string{hashlab.KindFamily, hashlab.KindHash, hashlab.KindControl}, s.Kind)
}

// load returns the number of keys as a part of the capacity m·ln 2/k, at which
// half of the bits are set.
func load(f hashlab.FPRRow) float64 {
	return float64(f.K) * float64(f.N) / float64(f.M) / math.Ln2
}

// sameLoad reports whether two loads are equal but for rounding.
func sameLoad(a, b float64) bool { return math.Abs(a-b) < 0.01*b }

// pointsOf returns the rows of a family over a corpus that a picture shows: of
// filters with the same load the largest.
func pointsOf(rows []hashlab.FPRRow, l line, corpus string) []hashlab.FPRRow {
	var all []hashlab.FPRRow
	for _, f := range rows {
		if lineOf(f) != l || f.Corpus != corpus || f.Rate.High <= 0 {
			continue
		}
		i := slices.IndexFunc(all, func(o hashlab.FPRRow) bool { return sameLoad(load(o), load(f)) })
		switch {
		case i < 0:
			all = append(all, f)
		case f.M > all[i].M:
			all[i] = f
		}
	}
	return all
}

// equivalenceTable compares the rates with the formula's.
func equivalenceTable(rows []hashlab.Equivalence) dataTable {
	caption := fmt.Sprintf("As the formula says: equivalent if the 90%% interval of the ratio is within %.0f%% of 1 (two one-sided tests), different if the farthest ratio at any fill is not by chance", 100*hashlab.EquivalenceMargin)
	return table(caption, []string{"subject", "corpus", "k", "hits", "predicted", "ratio [90%]", "p (equivalent)", "farthest ratio", "p (differs)", "verdict"}, rows, func(e hashlab.Equivalence) []string {
		return []string{e.Label(), cmp.Or(e.Corpus, "all together"), fmt.Sprint(e.K), text.Number(e.Hits), fmt.Sprintf("%.1f", e.Expected), format.Equivalence(e), format.P(e.PEquivalent),
			fmt.Sprintf("%.2f", e.Worst), format.P(e.PDiffers), e.Verdict}
	})
}

func ratesSection(r *hashlab.Report) section {
	s := section{ID: "rates", Title: "False positives per key", About: "Filters are filled with random parts of a corpus, and tested with its other keys. " +
		"The textbook's formula is (1 - e^(-kn/m))^k for n keys, m bits and k functions. The effective k is the number of ideal functions that would have " +
		"the measured rate at the measured fill. All limits are of 95% confidence, and include the spread between the filters."}
	for _, rows := range hashlab.Groups(r.FPR, corpusOf) {
		s.Tables = append(s.Tables, table(numbers+": "+rows[0].Corpus, []string{"subject", "k", "m", "n", "filters", "hits", "trials", "rate [95%]", "formula", "× formula", "effective k [95%]", "fill", "expected fill", "fill^k"}, rows, rateCells))
	}
	if len(r.Equivalence) > 0 {
		s.Tables = append(s.Tables, equivalenceTable(r.Equivalence))
	}
	if len(lines(r.FPR)) == 0 {
		return s
	}
	ratios := overview("Measured rate, in times of the formula's", r.FPR, func(f hashlab.FPRRow) (hashlab.Interval, bool) {
		return ratio(f), f.Hits > 0 && f.Formula > 0
	})
	ratios.colour, ratios.wide = byFactor, true
	s.add(ratios.picture("fpr-overview", "Each row is a family, each column a corpus; the number is how many times the formula's rate was measured, in the fullest filters, with its 95% limits below. "+
		"1.00 is what the textbook promises. Orange is worse, blue better; without colour the limits include 1, and the difference may be chance."))
	add := s.multiples("Rates against how full the filter is: 100% of the capacity is when half of the bits are set. Marks are measured rates, their bars 95% limits. Hollow marks with an arrow are upper bounds of rows without hits. " +
		"The dashed line is the formula, unless it is below the picture: marks above it let more keys pass than promised.")
	corpora := hashlab.Distinct(r.FPR, corpusOf)
	add(ratesLegend(corpora))
	var all []rateDots
	low, high := 0, math.MinInt // powers of ten, the same for all pictures
	for _, l := range lines(r.FPR) {
		d := newRateDots(r.FPR, l, corpora)
		least, most := d.decades()
		low, high = min(low, least), max(high, most)
		all = append(all, d)
	}
	for _, d := range all {
		add(d.picture(low, high))
	}
	return s
}

func rateCells(f hashlab.FPRRow) []string {
	name := f.Label()
	if f.FullSize {
		name += " (full size)"
	}
	k, limits := format.EffectiveK(f)
	if limits != "" {
		k += " " + limits
	}
	return []string{name, fmt.Sprint(f.K), format.Bits(f.M), text.Number(f.N), fmt.Sprint(f.Filters), text.Number(f.Hits), text.Number(f.Trials),
		format.Interval(f.Rate, f.Hits), format.Rate(f.Formula), format.Ratio(f), k, format.Rate(f.Fill), format.Rate(f.ExpectedFill), format.Rate(f.ByFill)}
}

// overview returns a matrix of families and corpora: a number of each for the
// fullest filter. Limits that are not both 0 are written below it, and a number
// whose limits include 1 has no colour.
func overview(title string, rows []hashlab.FPRRow, number func(hashlab.FPRRow) (x hashlab.Interval, ok bool)) *matrix {
	all := lines(rows)
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	m := newMatrix(title, names, hashlab.Distinct(rows, corpusOf))
	for i, l := range all {
		for j, corpus := range m.columns {
			fullest := 0.0
			for _, f := range pointsOf(rows, l, corpus) {
				x, ok := number(f)
				if !ok || load(f) <= fullest {
					continue
				}
				fullest = load(f)
				m.cells[i][j] = x.Value
				if x.High > 0 {
					m.note(i, j, m.text(x.Low)+"–"+m.text(x.High))
					m.pale[i][j] = x.Low <= 1 && 1 <= x.High
				}
			}
		}
	}
	return m
}

func fillSection(r *hashlab.Report) section {
	s := section{ID: "fill", Title: "Fill", About: "The part of the bits that are set, against 1 - e^(-kn/m), which ideal functions fill. Functions that set the same bits leave more of them clear. " +
		"That alone would make false positives rarer, but such functions also let more keys pass. The numbers are in the tables above."}
	m := overview("Measured fill, in parts of the expected", r.FPR, func(f hashlab.FPRRow) (hashlab.Interval, bool) {
		return hashlab.Interval{Value: f.Fill / f.ExpectedFill}, f.ExpectedFill > 0
	})
	m.colour, m.wide = func(x float64) color.NRGBA { return mix(white, orange, 2*math.Abs(1-x)) }, true
	s.add(m.picture("fill", "Each row is a family, each column a corpus; the number is the fill in the fullest filters, in parts of what ideal functions fill. 1.00, without colour, is as expected; the more orange, the further off."))
	return s
}
