package page

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

// line is what a picture of rates is about: a family or control with its k, over
// all corpora.
type line struct {
	hashlab.Subject
	k int
}

func (l line) String() string { return fmt.Sprintf("%s, k = %d", l.Name, l.k) }

// lines are those of the rows, in their order, those of single hashes left out:
// with k = 1 the rate is the fill, which is shown elsewhere.
func lines(rows []hashlab.FPRRow) []line {
	var all []line
	for _, f := range rows {
		l := line{f.Subject, f.K}
		if f.Kind != hashlab.KindHash && f.K > 1 && !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(rank(a.Subject), rank(b.Subject)) })
	return all
}

// rank orders subjects: families, hashes, controls.
func rank(s hashlab.Subject) int {
	return slices.Index([]string{hashlab.KindFamily, hashlab.KindHash, hashlab.KindControl}, s.Kind)
}

// load is how many keys there are, in parts of the capacity m·ln 2/k, at which
// half of the bits are set.
func load(f hashlab.FPRRow) float64 {
	return float64(f.K) * float64(f.N) / float64(f.M) / math.Ln2
}

// pointsOf are the rows of a family over a corpus that a picture shows: of
// filters with the same load the largest.
func pointsOf(rows []hashlab.FPRRow, l line, corpus string) []hashlab.FPRRow {
	var all []hashlab.FPRRow
	for _, f := range rows {
		if (line{f.Subject, f.K}) != l || f.Corpus != corpus || f.Rate.High <= 0 {
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

// sameLoad says that two loads differ by rounding alone.
func sameLoad(a, b float64) bool { return math.Abs(a-b) < 0.01*b }

func ratesSection(r *hashlab.Report) (section, error) {
	s := section{ID: "rates", Title: "False positives per key", About: "Filters are made from random parts of a corpus, and asked for its other keys. " +
		"The textbook's formula is (1 - e^(-kn/m))^k for n keys, m bits and k functions. The effective k is the number of ideal functions that would have " +
		"the measured rate at the measured fill. All limits are of 95% confidence, and show the spread between the filters, too."}
	s.Tables = rateTables(r.FPR)
	if len(lines(r.FPR)) == 0 {
		return s, nil
	}
	ratios, err := ratioPicture(r.FPR)
	if err != nil {
		return s, err
	}
	s.Pictures = append(s.Pictures, ratios)
	for _, l := range lines(r.FPR) {
		p, err := ratePicture(r.FPR, l)
		if err != nil {
			return s, err
		}
		s.Pictures = append(s.Pictures, p)
	}
	return s, nil
}

// overview is a matrix of families and corpora: a number of each where the filter
// is fullest.
func overview(title string, rows []hashlab.FPRRow, number func(hashlab.FPRRow) (x float64, ok bool)) *matrix {
	all := lines(rows)
	corpora := hashlab.Names(rows, func(f hashlab.FPRRow) string { return f.Corpus })
	m := newMatrix(title, len(all), corpora)
	m.text = func(x float64) string { return fmt.Sprintf("%.2f", x) }
	for i, l := range all {
		m.rows[i] = l.String()
		for j, corpus := range corpora {
			fullest := 0.0
			for _, f := range pointsOf(rows, l, corpus) {
				if x, ok := number(f); ok && load(f) > fullest {
					fullest = load(f)
					m.cells[i][j] = x
				}
			}
		}
	}
	return m
}

// ratioPicture tells how many times the formula's the rates are.
func ratioPicture(rows []hashlab.FPRRow) (Picture, error) {
	m := overview("Measured rate, in times of the formula's", rows, func(f hashlab.FPRRow) (float64, bool) {
		return f.Rate.Value / f.Formula, f.Hits > 0 && f.Formula > 0
	})
	m.colour = byFactor
	p, err := m.picture("fpr-overview", "Each row is a family, each column a corpus; the number is how many times the formula's rate was measured, in the fullest filters. "+
		"1.00, without colour, is what the textbook promises. Orange is worse, blue better.")
	p.Wide = true
	return p, err
}

// rateTables has a table a corpus.
func rateTables(rows []hashlab.FPRRow) []dataTable {
	var all []dataTable
	for _, corpus := range hashlab.Names(rows, func(f hashlab.FPRRow) string { return f.Corpus }) {
		t := dataTable{Caption: "The numbers: " + corpus, Header: []string{"subject", "k", "m", "n", "filters", "hits", "trials", "rate [95%]", "formula", "× formula", "effective k [95%]", "fill", "expected fill", "fill^k"}}
		for _, f := range rows {
			if f.Corpus != corpus {
				continue
			}
			name := f.Name
			if f.FullSize {
				name += " (full size)"
			}
			t.add(name, fmt.Sprint(f.K), hashlab.FormatBits(f.M), text.Number(f.N), fmt.Sprint(f.Filters), text.Number(f.Hits), text.Number(f.Trials),
				hashlab.FormatInterval(f.Rate, f.Hits), hashlab.FormatRate(f.Formula), hashlab.FormatRatio(f), hashlab.FormatEffectiveK(f),
				hashlab.FormatRate(f.Fill), hashlab.FormatRate(f.ExpectedFill), hashlab.FormatRate(f.ByFill))
		}
		all = append(all, t)
	}
	return all
}

func fillSection(r *hashlab.Report) (section, error) {
	s := section{ID: "fill", Title: "Fill", About: "The part of the bits that are set, against 1 - e^(-kn/m), which ideal functions fill. Functions that fall on the same bits leave more of them clear: " +
		"that alone would make false positives rarer, but these functions let more keys pass, too. The numbers are in the tables above."}
	if len(lines(r.FPR)) == 0 {
		return s, nil
	}
	m := overview("Measured fill, in parts of the expected", r.FPR, func(f hashlab.FPRRow) (float64, bool) {
		return f.Fill / f.ExpectedFill, f.ExpectedFill > 0
	})
	m.colour = func(x float64) color.NRGBA { return mix(white, orange, 2*math.Abs(1-x)) }
	p, err := m.picture("fill", "Each row is a family, each column a corpus; the number is the fill in the fullest filters, in parts of what ideal functions fill. 1.00, without colour, is as expected; the more orange, the further off.")
	p.Wide = true
	s.Pictures = append(s.Pictures, p)
	return s, err
}
