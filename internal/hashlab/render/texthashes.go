package render

import (
	"fmt"
	"math"
	"slices"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/hashlab/summary"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// passRates writes a table a family: functions down, corpora across. Families
// whose functions all do their work share a sentence.
func (t *textWriter) passRates() {
	if !t.section(len(t.report.PassRates), "pass rates", "The part of absent keys that each index function alone lets pass. An ideal function's is the filter's fill ratio; 1 is a function that does nothing.") {
		return
	}
	var good []string
	var ratios summary.Range
	for _, f := range summary.Families(t.report) {
		if !f.AllWork() {
			var cells, fill []cell
			for _, p := range f.Rows {
				cells = append(cells, cell{hashlab.HashLabel(p.Hash), p.Corpus, format.Rate(p.Rate.Value)})
				fill = append(fill, cell{"(fill)", p.Corpus, format.Rate(p.Fill)})
			}
			t.grid(text.Printable(f.Label)+", by corpus:", "function", append(cells, fill...))
			continue
		}
		good = append(good, text.Printable(f.Label))
		for _, p := range f.Rows {
			if p.Fill > 0 {
				ratios.Add(p.Rate.Value/p.Fill, p.Corpus)
			}
		}
	}
	if len(good) > 0 {
		fmt.Fprintln(&t.out)
		t.paragraph("", fmt.Sprintf("%s: each function %.2f to %.2f times the fill.", summary.Join(good), ratios.Low, ratios.High))
	}
}

// collisions writes a table for each number of bits: hashes down, corpora across.
func (t *textWriter) collisions() {
	if !t.section(len(t.report.Collisions), "collisions", "How many keys of each corpus have the value of an earlier key. A poor hash has far more than expected, a regular one far fewer; neither is due to chance.") {
		return
	}
	bits := func(c hashlab.Collision) int { return c.Bits }
	groups := hashlab.Groups(t.report.Collisions, bits)
	slices.SortFunc(groups, func(a, b []hashlab.Collision) int { return bits(a[0]) - bits(b[0]) })
	for _, rows := range groups {
		var cells, expected []cell
		for _, c := range rows {
			cells = append(cells, cell{subjectText(c.Subject), c.Corpus, text.Number(c.Collisions)})
			expected = append(expected, cell{"(expected)", c.Corpus, fmt.Sprintf("%.1f", c.Expected)})
		}
		t.grid(fmt.Sprintf("Of %d bits, by corpus:", rows[0].Bits), "hash", append(cells, expected...))
	}
}

// uniformity writes a table of the low bits and one of the high ones.
func (t *textWriter) uniformity() {
	if !t.section(len(t.report.Uniformity), "uniformity", fmt.Sprintf("Chi-square tests of each hash's lowest and highest bits, over as many buckets as leave at least 5 keys for each. The number is the effect, Cohen's w without what chance gives: "+
		"0.1 is small, 0.3 medium, 0.5 large. A star marks p < %g after Holm's correction for all %d tests; --csv, --json and --html have each p.", summary.Significant, len(t.report.Uniformity))) {
		return
	}
	for _, part := range []string{"low", "high"} {
		var cells []cell
		for _, u := range t.report.Uniformity {
			if u.Part != part {
				continue
			}
			cells = append(cells, cell{subjectText(u.Subject), u.Corpus, fmt.Sprintf("%.3f", u.ExcessEffect) + star(u.PHolm < summary.Significant)})
		}
		t.grid(fmt.Sprintf("The %sest bits, by corpus:", part), "hash", cells)
	}
}

func (t *textWriter) avalanche() {
	if !t.section(len(t.report.Avalanche), "avalanche", "The bias tells how far from one half the probability is that a bit of the value flips with a bit of the key, on average over all pairs of bits: "+
		"0 is ideal, 1 is a bit that always or never flips. The percentage is the part of the pairs that never flip. --html shows each pair.") {
		return
	}
	var cells []cell
	for _, a := range t.report.Avalanche {
		cells = append(cells, cell{subjectText(a.Subject), a.Corpus, fmt.Sprintf("%.2f %3.0f%%", a.MeanBias, 100*a.Never)})
	}
	t.grid("Mean bias and pairs that never flip, by corpus:", "hash", cells)
	t.worstBits()
}

// worstBits writes the worst bit and the worst pair of bits of each hash.
func (t *textWriter) worstBits() {
	rows := newTable("hash", "mean bias", "worst bit", "?bits", "BIC mean", "BIC worst", "?bits ", "?tested")
	for _, w := range summary.WorstBits(t.report) {
		bias, bic := w.Bias, w.BIC
		pair, places := "-", "-"
		if bic.BICTested > 0 {
			pair = fmt.Sprintf("%.2f", bic.BICWorst) + star(w.BICFails)
			places = fmt.Sprintf("%d to %d, %d", bic.BICIn, bic.BICOut1, bic.BICOut2)
		}
		rows.Add(subjectText(bias.Subject), fmt.Sprintf("%.3f", w.MeanBias), fmt.Sprintf("%.2f", bias.WorstBias)+star(w.BiasFails), fmt.Sprintf("%d to %d", bias.WorstIn, bias.WorstOut),
			fmt.Sprintf("%.3f", w.MeanBIC), pair, places, fmt.Sprintf("%.0f%%", 100*bic.BICTested))
	}
	t.table(fmt.Sprintf("The worst of all corpora. Worst bit: the largest bias of one bit of the key and one of the value. BIC, the bit independence criterion: the correlation of two bits of the value when a bit of the key flips; "+
		"0 is ideal, 1 is one bit twice. Tested is the part of these that flip often enough and seldom enough to have a correlation. A star marks p < %g after Holm's correction for all hashes and corpora.", summary.Significant), rows)
}

// star marks what chance does not explain.
func star(significant bool) string {
	if significant {
		return "*"
	}
	return " "
}

// agreement writes a table of the related pairs of functions, and the range of
// the others.
func (t *textWriter) agreement() {
	if !t.section(len(t.report.Agreement), "agreement", "How two functions of a family answer the same absent keys: kappa is 1 for one function under two names, 0 for independent ones.") {
		return
	}
	type pair struct{ family, functions string }
	type kappas struct{ same, kappa summary.Range }
	var pairs []pair
	related := make(map[pair]*kappas)
	var others summary.Range
	chance := make(map[string]*summary.Range) // of the controls
	for _, a := range t.report.Agreement {
		for i, j := range a.Pairs() {
			kappa := a.Kappa[i][j]
			if hashlab.FamilyKind(a.Family) == hashlab.KindControl {
				if chance[a.Family] == nil {
					chance[a.Family] = new(summary.Range)
				}
				chance[a.Family].Add(kappa, a.Corpus)
			}
			if math.Abs(kappa) < summary.Related {
				others.Add(kappa, a.Corpus)
				continue
			}
			p := pair{text.Printable(a.Family), hashlab.HashLabel(a.Names[i]) + " and " + hashlab.HashLabel(a.Names[j])}
			if related[p] == nil {
				related[p] = new(kappas)
				pairs = append(pairs, p)
			}
			related[p].same.Add(a.Same[i][j], a.Corpus)
			related[p].kappa.Add(kappa, a.Corpus)
		}
	}
	which := "All pairs"
	if len(pairs) > 0 {
		which = "The other pairs"
		rows := newTable("family", "functions", "corpora", "same index", "kappa")
		for _, p := range pairs {
			k := related[p]
			rows.Add(p.family, p.functions, fmt.Sprint(k.kappa.Rows), k.same.Percent(), fmt.Sprintf("%.3f to %.3f", k.kappa.Low, k.kappa.High))
		}
		t.table(fmt.Sprintf("Pairs with a kappa of at least %g, and over how many corpora:", summary.Related), rows)
	}
	if others.Rows > 0 {
		t.paragraph("", fmt.Sprintf("%s, %s counted once a corpus, have a kappa between %.3f and %.3f.", which, text.Number(others.Rows), others.Low, others.High))
	}
	var parts []string
	for _, name := range []string{hashlab.Ideal, hashlab.XXH3} {
		if k := chance[name]; k != nil {
			parts = append(parts, fmt.Sprintf("%s %.3f to %.3f", name, k.Low, k.High))
		}
	}
	if len(parts) > 0 {
		t.paragraph("", fmt.Sprintf("The controls' pairs, by chance alone: %s.", summary.Join(parts)))
	}
}

// cell is a cell of a table with corpora across.
type cell struct{ name, corpus, text string }

// grid writes cells in tables of as many corpora as fit. Rows and columns are in
// the order of their first cells; what is the title of the rows.
func (t *textWriter) grid(caption, what string, cells []cell) {
	corpora := hashlab.Distinct(cells, func(c cell) string { return c.corpus })
	for len(corpora) > 0 {
		n := len(corpora)
		rows := t.gridTable(what, cells, corpora)
		for n > 1 && !rows.Fits(t.width) {
			n--
			rows = t.gridTable(what, cells, corpora[:n])
		}
		t.table(caption, rows)
		corpora = corpora[n:]
	}
}

// gridTable returns the table of the cells of these corpora.
func (t *textWriter) gridTable(what string, cells []cell, corpora []string) *term.Table {
	rows := newTable(what)
	for _, c := range corpora {
		rows.Columns = append(rows.Columns, term.Column{Title: t.number(c)})
	}
	for _, g := range hashlab.Groups(cells, func(c cell) string { return c.name }) {
		row := []string{text.Printable(g[0].name)}
		for _, corpus := range corpora {
			i := slices.IndexFunc(g, func(c cell) bool { return c.corpus == corpus })
			if i < 0 {
				row = append(row, "-")
			} else {
				row = append(row, g[i].text)
			}
		}
		rows.Add(row...)
	}
	return rows
}

// number returns a corpus's number in the table of corpora, or if it is not there
// the beginning of its name.
func (t *textWriter) number(corpus string) string {
	i := slices.IndexFunc(t.report.Manifest.Corpora, func(c hashlab.CorpusInfo) bool { return c.Name == corpus })
	if i < 0 {
		const most = 12
		name := []rune(text.Printable(corpus))
		return string(name[:min(len(name), most)])
	}
	return fmt.Sprintf("[%d]", i+1)
}
