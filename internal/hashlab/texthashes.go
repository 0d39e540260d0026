package hashlab

import (
	"fmt"
	"math"
	"slices"

	"spamgate/internal/text"
)

// passRates writes a table a family: functions down, corpora across.
func (t *textReport) passRates() {
	if len(t.report.PassRates) == 0 {
		return
	}
	t.title("pass rates", "The part of absent keys that each index function alone lets pass. An ideal function's is the filter's fill ratio; 1 is a function that does nothing.")
	for _, f := range t.report.passFamilies() {
		if !t.report.allCarry(f) {
			t.passTable(f)
		}
	}
	t.even()
}

// even says of the families whose functions all do their work, which have no
// table, how near to the fill they are.
func (t *textReport) even() {
	var names []string
	var off extent
	for _, f := range t.report.passFamilies() {
		if !t.report.allCarry(f) {
			continue
		}
		names = append(names, text.Printable(t.report.Label(f.name, f.k)))
		for _, p := range t.report.PassRates {
			if p.Family == f.name && p.K == f.k && p.Fill > 0 {
				off.take(p.Rate.Value/p.Fill, p.Corpus)
			}
		}
	}
	if len(names) > 0 {
		fmt.Fprintln(&t.out)
		t.paragraph("", fmt.Sprintf("%s: each function %.2f to %.2f times the fill.", and(names), off.low, off.high))
	}
}

// allCarry reports whether each function of a family does an ideal one's work
// over all corpora.
func (r *Report) allCarry(of family) bool {
	return !slices.ContainsFunc(r.functionsOf(of), func(f function) bool { return !f.carries() })
}

// passTable writes a family's table.
func (t *textReport) passTable(of family) {
	g := newGrid("function")
	for _, p := range t.report.PassRates {
		if p.Family == of.name && p.K == of.k {
			g.put(p.Hash, p.Corpus, FormatRate(p.Rate.Value))
		}
	}
	for _, p := range t.report.PassRates {
		if p.Family == of.name && p.K == of.k {
			g.put("(fill)", p.Corpus, FormatRate(p.Fill))
		}
	}
	t.grid(text.Printable(t.report.Label(of.name, of.k))+", by corpus:", g)
}

// collisions writes a table for each number of bits: hashes down, corpora across.
func (t *textReport) collisions() {
	if len(t.report.Collisions) == 0 {
		return
	}
	t.title("collisions", "How many keys of each corpus have a value that another key had before. Far more than expected is a poor hash, far fewer a regular one: either is no chance.")
	var sizes []int
	for _, c := range t.report.Collisions {
		if !slices.Contains(sizes, c.Bits) {
			sizes = append(sizes, c.Bits)
		}
	}
	slices.Sort(sizes)
	for _, bits := range sizes {
		g := newGrid("hash")
		for _, c := range t.report.Collisions {
			if c.Bits == bits {
				g.put(subjectText(c.Subject), c.Corpus, text.Number(c.Collisions))
			}
		}
		for _, c := range t.report.Collisions {
			if c.Bits == bits {
				g.put("(expected)", c.Corpus, fmt.Sprintf("%.1f", c.Expected))
			}
		}
		t.grid(fmt.Sprintf("Of %d bits, by corpus:", bits), g)
	}
}

// uniformity writes a table of the low bits and one of the high ones.
func (t *textReport) uniformity() {
	if len(t.report.Uniformity) == 0 {
		return
	}
	t.title("uniformity", fmt.Sprintf("Chi-square tests of each hash's lowest and highest bits, over as many buckets as leave at least 5 keys for each. The number is the effect, Cohen's w without what chance gives: "+
		"0.1 is small, 0.3 middling, 0.5 large. A star marks p < %g after Holm's correction for all %d tests; --csv, --json and --html have each p.", significant, len(t.report.Uniformity)))
	for _, part := range []string{"low", "high"} {
		g := newGrid("hash")
		for _, u := range t.report.Uniformity {
			if u.Part != part {
				continue
			}
			star := " "
			if u.PHolm < significant {
				star = "*"
			}
			g.put(subjectText(u.Subject), u.Corpus, fmt.Sprintf("%.3f", u.ExcessEffect)+star)
		}
		t.grid(fmt.Sprintf("The %sest bits, by corpus:", part), g)
	}
}

func (t *textReport) avalanche() {
	if len(t.report.Avalanche) == 0 {
		return
	}
	t.title("avalanche", "How far from one half the probability is that a bit of the value flips with a bit of the key, on average over all pairs of bits: bias 0 is the ideal, "+
		"1 is a bit that always or never flips. Then, how many of the pairs never flip. --html shows each pair.")
	g := newGrid("hash")
	for _, a := range t.report.Avalanche {
		g.put(subjectText(a.Subject), a.Corpus, fmt.Sprintf("%.2f %3.0f%%", a.MeanBias, 100*a.Never))
	}
	t.grid("Mean bias and pairs that never flip, by corpus:", g)
}

// Related is the kappa from which on two functions are called related.
const Related = 0.1

// pair is two functions of a family, over some corpora.
type pair struct {
	family, functions string
	same, kappa       extent
}

func (t *textReport) agreement() {
	if len(t.report.Agreement) == 0 {
		return
	}
	t.title("agreement", "How two functions of a family answer the same absent keys: kappa is 1 for one function under two names, 0 for independent ones.")
	var pairs []pair
	others := extent{}
	for _, a := range t.report.Agreement {
		for i := range a.Names {
			for j := i + 1; j < len(a.Names); j++ {
				if math.Abs(a.Kappa[i][j]) < Related {
					others.take(a.Kappa[i][j], a.Corpus)
					continue
				}
				p := pair{family: text.Printable(a.Family), functions: a.Names[i] + " and " + a.Names[j]}
				at := slices.IndexFunc(pairs, func(o pair) bool { return o.family == p.family && o.functions == p.functions })
				if at < 0 {
					at = len(pairs)
					pairs = append(pairs, p)
				}
				pairs[at].same.take(a.Same[i][j], a.Corpus)
				pairs[at].kappa.take(a.Kappa[i][j], a.Corpus)
			}
		}
	}
	if len(pairs) > 0 {
		rows := &textTable{columns: []column{{title: "family"}, {title: "functions"}, {title: "corpora"}, {title: "same index"}, {title: "kappa"}}}
		for _, p := range pairs {
			rows.add(p.family, p.functions, fmt.Sprint(p.kappa.rows), percents(p.same), fmt.Sprintf("%.3f to %.3f", p.kappa.low, p.kappa.high))
		}
		t.table(fmt.Sprintf("Pairs with a kappa of at least %g, and over how many corpora:", Related), rows)
	}
	if others.rows > 0 {
		which := "The other pairs"
		if len(pairs) == 0 {
			which = "All pairs"
		}
		t.paragraph("", fmt.Sprintf("%s, %s counted once a corpus, have a kappa between %.3f and %.3f.", which, text.Number(others.rows), others.low, others.high))
	}
	t.controlAgreement()
}

// controlAgreement says how far from 0 kappa is by chance: the controls' pairs.
func (t *textReport) controlAgreement() {
	var parts []string
	for _, name := range []string{idealName, xxh3Name} {
		var kappa extent
		for _, a := range t.report.Agreement {
			for i := range a.Names {
				for j := i + 1; a.Family == name && j < len(a.Names); j++ {
					kappa.take(a.Kappa[i][j], a.Corpus)
				}
			}
		}
		if kappa.rows > 0 {
			parts = append(parts, fmt.Sprintf("%s %.3f to %.3f", name, kappa.low, kappa.high))
		}
	}
	if len(parts) > 0 {
		t.paragraph("", fmt.Sprintf("The controls' pairs, by chance alone: %s.", and(parts)))
	}
}
