package page

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/hashlab/summary"
	"spamgate/internal/text"
)

func passSection(r *hashlab.Report) section {
	s := section{ID: "pass-rates", Title: "What each function does", About: "The part of absent keys that each index function alone lets pass. An ideal function's is the fill ratio: its work is 100%. " +
		"A function that lets every key pass does 0%: ln(pass rate) / ln(fill)."}
	families := summary.Families(r)
	add := s.multiples("Full blue, 100, does all of an ideal function's work; without colour, 0, does nothing.")
	pictures := 0
	for _, f := range families {
		if slices.ContainsFunc(f.Rows, func(p hashlab.PassRow) bool {
			w, ok := summary.Worth(p)
			return ok && math.Abs(w-1) > 0.1
		}) {
			add(workPicture(f))
			pictures++
		}
	}
	if pictures < len(families) {
		s.About += " Families without a picture have functions that all do their work, within a tenth."
	}
	s.Tables = append(s.Tables, table(numbers, []string{"family", "corpus", "function", "hits", "trials", "pass rate [95%]", "fill", "work"}, r.PassRates, func(p hashlab.PassRow) []string {
		work := "-"
		if w, ok := summary.Worth(p); ok {
			work = fmt.Sprintf("%.0f%%", 100*w)
		}
		return []string{summary.Label(r, p.Family, p.K), p.Corpus, hashlab.HashLabel(p.Hash), text.Number(p.Hits), text.Number(p.Trials), format.Interval(p.Rate, p.Hits), format.Rate(p.Fill), work}
	}))
	return s
}

// workPicture draws a family's functions against the corpora.
func workPicture(f summary.Family) (Picture, error) {
	m := gather(f.Label+": work of each function, in %", f.Rows, func(p hashlab.PassRow) (string, string, float64) {
		if w, ok := summary.Worth(p); ok {
			return hashlab.HashLabel(p.Hash), p.Corpus, max(0, w) // below it is noise
		}
		return hashlab.HashLabel(p.Hash), p.Corpus, math.NaN()
	})
	m.colour, m.text = byPart, func(x float64) string { return fmt.Sprintf("%.0f", 100*x) }
	return m.picture("work-"+f.Label, "")
}

func collisionsSection(r *hashlab.Report) section {
	s := section{ID: "collisions", Title: "Collisions", About: "How many different values a hash has over a corpus, cut to some bits, and how many keys have the value of an earlier one, compared with the expectation for an ideal hash."}
	// A picture of the fewest bits, which have the most collisions.
	least := slices.MinFunc(r.Collisions, func(a, b hashlab.Collision) int { return cmp.Compare(a.Bits, b.Bits) }).Bits
	rows := hashlab.Filter(r.Collisions, func(c hashlab.Collision) bool { return c.Bits == least })
	m := gather(fmt.Sprintf("Collisions of %d bits, in times of the expected", least), rows, func(c hashlab.Collision) (string, string, float64) {
		return c.Label(), c.Corpus, float64(c.Collisions) / max(c.Expected, 1e-9) // never 0 for two keys
	})
	m.colour, m.text = func(x float64) color.NRGBA { return byFactor(max(x, 0.01)) }, func(x float64) string {
		if x < 10 {
			return fmt.Sprintf("%.2f", x)
		}
		return fmt.Sprintf("%.0f", x)
	}
	s.add(m.picture("collisions", "1, without colour, is as an ideal hash has it. Orange is worse; blue are hashes that are too regular to collide by chance."))
	s.Tables = append(s.Tables, table(numbers, []string{"hash", "corpus", "bits", "keys", "different", "collisions", "expected"}, r.Collisions, func(c hashlab.Collision) []string {
		return []string{c.Label(), c.Corpus, fmt.Sprint(c.Bits), text.Number(c.Keys), text.Number(c.Distinct), text.Number(c.Collisions), fmt.Sprintf("%.1f", c.Expected)}
	}))
	return s
}

func uniformitySection(r *hashlab.Report) section {
	s := section{ID: "uniformity", Title: "Uniformity", About: fmt.Sprintf("Chi-square tests of each hash's lowest and highest bits. The corrected p is Holm's, for all %d tests of the run: below 0.05 the spread is uneven, and the effect, Cohen's w, "+
		"says how much (0.1 small, 0.3 medium, 0.5 large); the excess is the effect without what chance gives. Where the p of being so even is small, keys are spread more evenly than by chance.", len(r.Uniformity))}
	add := s.multiples("The number is the excess, Cohen's w without what chance gives. 0, without colour, is even; 0.5 and more, strongly orange, is very uneven.")
	for _, rows := range hashlab.Groups(r.Uniformity, func(u hashlab.Uniformity) string { return u.Part }) {
		m := gather(fmt.Sprintf("Unevenness of the %sest bits", rows[0].Part), rows, func(u hashlab.Uniformity) (string, string, float64) {
			return u.Label(), u.Corpus, u.ExcessEffect
		})
		m.colour = func(x float64) color.NRGBA { return mix(white, orange, x) }
		add(m.picture("uniformity-"+rows[0].Part, ""))
	}
	s.Tables = append(s.Tables, table(numbers, []string{"hash", "corpus", "bits", "buckets", "keys", "chi-square", "df", "p", "p corrected", "p of being so even", "effect", "excess"}, r.Uniformity, func(u hashlab.Uniformity) []string {
		return []string{u.Label(), u.Corpus, u.Part, text.Number(u.Buckets), text.Number(u.Keys), fmt.Sprintf("%.1f", u.ChiSquare), text.Number(u.DF),
			format.P(u.P), format.P(u.PHolm), format.P(u.PEven), fmt.Sprintf("%.3f", u.Effect), fmt.Sprintf("%.3f", u.ExcessEffect)}
	}))
	return s
}
