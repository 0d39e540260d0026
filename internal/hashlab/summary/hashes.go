package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

// bpCollapse says how few values BP has, compared with an ideal hash.
func (s *summary) bpCollapse() {
	// More than chance if a tenth of the keys collide beyond the expectation,
	// whose square root is far below that.
	const collapse = 0.1
	excess := func(c hashlab.Collision) float64 { return (float64(c.Collisions) - c.Expected) / float64(c.Keys) }
	rows := hashlab.Filter(s.report.Collisions, func(c hashlab.Collision) bool { return c.Name == "BP" })
	if len(rows) == 0 {
		return
	}
	worst := slices.MaxFunc(rows, func(a, b hashlab.Collision) int { return cmp.Compare(excess(a), excess(b)) })
	expected := float64(worst.Keys) - worst.Expected
	if excess(worst) >= collapse {
		s.say("bp-collapse", true, "BP collapses: over %s its %d bits have %s for %s keys, where an ideal hash has %s.",
			text.Printable(worst.Corpus), worst.Bits, text.Count(worst.Distinct, "different value", "different values"), text.Number(worst.Keys), text.Number(int(expected+0.5)))
		return
	}
	s.say("bp-collapse", false, "BP does not collapse here: it has at least %.0f%% of the different values that an ideal hash has.", 100*float64(worst.Distinct)/expected)
}

// uniformity says which hashes spread keys unevenly.
func (s *summary) uniformity() {
	if len(s.report.Uniformity) == 0 {
		return
	}
	var most, some, never []string
	for _, tests := range hashlab.Groups(s.report.Uniformity, func(u hashlab.Uniformity) string { return u.Name }) {
		name := tests[0].Name
		failed := len(hashlab.Filter(tests, func(u hashlab.Uniformity) bool { return u.PHolm < Significant && u.ExcessEffect >= smallEffect }))
		switch {
		case failed == 0:
			never = append(never, name)
		case 2*failed > len(tests):
			most = append(most, name)
		default:
			some = append(some, fmt.Sprintf("%s (%d of %d)", name, failed, len(tests)))
		}
	}
	var parts []string
	add := func(when string, names []string) {
		if len(names) > 0 {
			parts = append(parts, when+Join(names))
		}
	}
	add("in most tests by ", most)
	add("in some by ", some)
	add("in none by ", never)
	s.say("uniformity", len(most)+len(some) > 0, "Low or high bits are spread unevenly (p < %g after Holm, Cohen's w at least %g beyond chance): %s.", Significant, smallEffect, strings.Join(parts, "; "))
}

// avalanche says which hashes have output bits that ignore input bits.
func (s *summary) avalanche() {
	if len(s.report.Avalanche) == 0 {
		return
	}
	var good, bad []string
	for _, tests := range hashlab.Groups(s.report.Avalanche, func(a hashlab.Avalanche) string { return a.Name }) {
		if slices.ContainsFunc(tests, func(a hashlab.Avalanche) bool { return a.MeanBias-a.Noise >= smallBias }) {
			bad = append(bad, tests[0].Name)
		} else {
			good = append(good, tests[0].Name)
		}
	}
	switch {
	case len(bad) == 0:
		s.say("avalanche", false, "Every hash lets each bit of a key flip each bit of the value about half of the time.")
	case len(good) == 0:
		s.say("avalanche", true, "No hash lets each bit of a key flip each bit of the value half of the time, as a good one does.")
	default:
		s.say("avalanche", true, "Each bit of a key flips each bit of the value about half of the time, as it should (mean bias below %g beyond chance), with %s only; not with %s.", smallBias, Join(good), Join(bad))
	}
}

// WorstBit is the worst of all corpora for one hash.
type WorstBit struct {
	MeanBias, MeanBIC float64
	Bias, BIC         hashlab.Avalanche // the rows with the worst bit and the worst pair
	BiasFails         bool              // over some corpus chance does not explain the worst bit
	BICFails          bool              // or the worst pair
}

// WorstBits returns the worst of each hash, in the order of the report.
func WorstBits(r *hashlab.Report) []WorstBit {
	var all []WorstBit
	for _, rows := range hashlab.Groups(r.Avalanche, func(a hashlab.Avalanche) string { return a.Name }) {
		w := WorstBit{Bias: rows[0], BIC: rows[0]}
		for _, a := range rows {
			w.MeanBias, w.MeanBIC = max(w.MeanBias, a.MeanBias), max(w.MeanBIC, a.BICMean)
			w.BiasFails, w.BICFails = w.BiasFails || a.WorstP < Significant, w.BICFails || a.BICP < Significant
			if a.WorstBias > w.Bias.WorstBias {
				w.Bias = a
			}
			if a.BICWorst > w.BIC.BICWorst {
				w.BIC = a
			}
		}
		all = append(all, w)
	}
	return all
}

// worstBits says of which hashes chance explains even the worst bit and the worst
// pair of bits.
func (s *summary) worstBits() {
	var good, dependent, bad []string
	for _, w := range WorstBits(s.report) {
		switch {
		case w.BiasFails:
			bad = append(bad, fmt.Sprintf("%s (%.2f)", w.Bias.Name, w.Bias.WorstBias))
		case w.BICFails:
			dependent = append(dependent, fmt.Sprintf("%s (%.2f, bits %d and %d)", w.BIC.Name, w.BIC.BICWorst, w.BIC.BICOut1, w.BIC.BICOut2))
		default:
			good = append(good, w.Bias.Name)
		}
	}
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+Join(names))
		}
	}
	add("Chance explains the worst bit and the worst pair of bits of ", good)
	add("Each bit flips as it should, but two bits of the value flip together (bit independence criterion, the correlation in brackets) with ", dependent)
	add("Some bit of the key flips some bit of the value too often or too seldom (the bias in brackets, 1 is always or never) with ", bad)
	if len(parts) > 0 {
		s.say("worst-bit", len(dependent)+len(bad) > 0, "%s (p < %g after Holm).", strings.Join(parts, ". "), Significant)
	}
}
