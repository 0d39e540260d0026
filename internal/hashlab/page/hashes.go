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

func passSection(r *hashlab.Report) (section, error) {
	s := section{ID: "pass-rates", Title: "What each function does", About: "The part of absent keys that each index function alone lets pass. An ideal function's is the fill ratio: its work is 100%. " +
		"A function that lets every key pass does 0%: ln(pass rate) / ln(fill)."}
	if len(r.PassRates) == 0 {
		return s, nil
	}
	var families []string // by their labels
	t := dataTable{Caption: "The numbers", Header: []string{"family", "corpus", "function", "hits", "trials", "pass rate [95%]", "fill", "work"}}
	for _, p := range r.PassRates {
		if label := r.Label(p.Family, p.K); !slices.Contains(families, label) {
			families = append(families, label)
		}
		work := "-"
		if w, ok := p.Worth(); ok {
			work = fmt.Sprintf("%.0f%%", 100*w)
		}
		t.add(r.Label(p.Family, p.K), p.Corpus, p.Hash, text.Number(p.Hits), text.Number(p.Trials), hashlab.FormatInterval(p.Rate, p.Hits), hashlab.FormatRate(p.Fill), work)
	}
	for _, family := range families {
		if !worthALook(r, family) {
			continue
		}
		picture, err := workPicture(r, family)
		if err != nil {
			return s, err
		}
		s.Pictures = append(s.Pictures, picture)
	}
	if len(s.Pictures) < len(families) {
		s.About += " Families without a picture have functions that all do their work, within a tenth."
	}
	s.Tables = append(s.Tables, t)
	return s, nil
}

// worthALook reports whether some function of a family does a tenth less or more
// than an ideal one.
func worthALook(r *hashlab.Report, family string) bool {
	return slices.ContainsFunc(r.PassRates, func(p hashlab.PassRow) bool {
		w, ok := p.Worth()
		return ok && math.Abs(w-1) > 0.1 && r.Label(p.Family, p.K) == family
	})
}

// workPicture is the matrix of a family's functions and the corpora.
func workPicture(r *hashlab.Report, family string) (Picture, error) {
	rows := slices.DeleteFunc(slices.Clone(r.PassRates), func(p hashlab.PassRow) bool { return r.Label(p.Family, p.K) != family })
	m := gather(family+": work of each function, in %", rows,
		func(p hashlab.PassRow) string { return p.Hash }, func(p hashlab.PassRow) string { return p.Corpus },
		func(p hashlab.PassRow) float64 {
			if w, ok := p.Worth(); ok {
				return max(0, w) // below it is noise
			}
			return math.NaN()
		})
	m.colour, m.text = byPart, func(x float64) string { return fmt.Sprintf("%.0f", 100*x) }
	return m.picture("work-"+family, fmt.Sprintf("%s: full blue, 100, does all of an ideal function's work; without colour, 0, does nothing.", family))
}

func collisionsSection(r *hashlab.Report) (section, error) {
	s := section{ID: "collisions", Title: "Collisions", About: "How many different values a hash has over a corpus, cut to some bits, and how many keys share theirs with an earlier one, against an ideal hash's expectation."}
	if len(r.Collisions) == 0 {
		return s, nil
	}
	// A picture of the fewest bits, where there is most to see.
	least := slices.MinFunc(r.Collisions, func(a, b hashlab.Collision) int { return cmp.Compare(a.Bits, b.Bits) }).Bits
	rows := slices.DeleteFunc(slices.Clone(r.Collisions), func(c hashlab.Collision) bool { return c.Bits != least })
	m := gather(fmt.Sprintf("Collisions of %d bits, in times of the expected", least), rows,
		func(c hashlab.Collision) string { return c.Name }, func(c hashlab.Collision) string { return c.Corpus },
		func(c hashlab.Collision) float64 { return float64(c.Collisions) / max(c.Expected, 1e-9) }) // never 0 for two keys
	m.colour, m.text = func(x float64) color.NRGBA { return byFactor(max(x, 0.01)) }, func(x float64) string {
		if x < 10 {
			return fmt.Sprintf("%.2f", x)
		}
		return fmt.Sprintf("%.0f", x)
	}
	p, err := m.picture("collisions", "1, without colour, is as an ideal hash has it. Orange is worse; blue are hashes that are too regular to collide by chance.")
	if err != nil {
		return s, err
	}
	s.Pictures = append(s.Pictures, p)
	t := dataTable{Caption: "The numbers", Header: []string{"hash", "corpus", "bits", "keys", "different", "collisions", "expected"}}
	for _, c := range r.Collisions {
		t.add(c.Name, c.Corpus, fmt.Sprint(c.Bits), text.Number(c.Keys), text.Number(c.Distinct), text.Number(c.Collisions), fmt.Sprintf("%.1f", c.Expected))
	}
	s.Tables = append(s.Tables, t)
	return s, nil
}

func uniformitySection(r *hashlab.Report) (section, error) {
	s := section{ID: "uniformity", Title: "Uniformity", About: fmt.Sprintf("Chi-square tests of each hash's lowest and highest bits. The corrected p is Holm's, for all %d tests of the run: below 0.05 the spread is uneven, and the effect, Cohen's w, "+
		"says how much (0.1 small, 0.3 middling, 0.5 large); the excess is the effect without what chance gives. Where the p of being so even is small, keys are spread more evenly than by chance.", len(r.Uniformity))}
	if len(r.Uniformity) == 0 {
		return s, nil
	}
	for _, part := range hashlab.Names(r.Uniformity, func(u hashlab.Uniformity) string { return u.Part }) {
		m := gather(fmt.Sprintf("Unevenness of the %sest bits", part),
			slices.DeleteFunc(slices.Clone(r.Uniformity), func(u hashlab.Uniformity) bool { return u.Part != part }),
			func(u hashlab.Uniformity) string { return u.Name }, func(u hashlab.Uniformity) string { return u.Corpus },
			func(u hashlab.Uniformity) float64 { return u.ExcessEffect })
		m.colour, m.text = func(x float64) color.NRGBA { return mix(white, orange, x) }, func(x float64) string { return fmt.Sprintf("%.2f", x) }
		p, err := m.picture("uniformity-"+part, "The number is the excess, Cohen's w without what chance gives. 0, without colour, is even; 0.5 and more, strongly orange, is very uneven.")
		if err != nil {
			return s, err
		}
		s.Pictures = append(s.Pictures, p)
	}
	t := dataTable{Caption: "The numbers", Header: []string{"hash", "corpus", "bits", "buckets", "keys", "chi-square", "df", "p", "p corrected", "p of being so even", "effect", "excess"}}
	for _, u := range r.Uniformity {
		t.add(u.Name, u.Corpus, u.Part, text.Number(u.Buckets), text.Number(u.Keys), fmt.Sprintf("%.1f", u.ChiSquare), text.Number(u.DF),
			hashlab.FormatP(u.P), hashlab.FormatP(u.PHolm), hashlab.FormatP(u.PEven), fmt.Sprintf("%.3f", u.Effect), fmt.Sprintf("%.3f", u.ExcessEffect))
	}
	s.Tables = append(s.Tables, t)
	return s, nil
}
