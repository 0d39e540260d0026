package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/text"
)

// Overview is what the report says of a family, in one row. The rates are those of
// filters that are small enough to measure, not of full size.
type Overview struct {
	Label     string
	AsFormula bool           // its rate is shown to be what the textbook's formula predicts
	Open      bool           // neither that is shown nor a difference
	Typical   hashlab.FPRRow // in the fullest filter over the first corpus
	Worst     hashlab.FPRRow // the row with most times the formula's rate
	Ns        float64        // for all indices of a key of TypicalKeyBytes; 0 if it was not measured
}

// Overviews returns the families that have enough false positives for a statement,
// those with the formula's rate first, then by their worst rate.
func Overviews(r *hashlab.Report) []Overview {
	var all []Overview
	for _, c := range allFamilyRates(r) {
		if c.rows == 0 {
			continue
		}
		o := Overview{Label: c.label, AsFormula: c.together.Verdict == hashlab.Equivalent, Open: c.together.Verdict != hashlab.Equivalent && c.together.Verdict != hashlab.Differs, Typical: c.full[0]}
		o.Worst = slices.MaxFunc(c.full, func(a, b hashlab.FPRRow) int { return cmp.Compare(times(a), times(b)) })
		if !o.AsFormula && c.worst.Formula > 0 && times(c.worst) > times(o.Worst) {
			o.Worst = c.worst
		}
		for _, s := range r.Speed {
			if s.Name == o.Typical.Name && s.K == o.Typical.K && s.KeyBytes == TypicalKeyBytes && s.What == hashlab.AllIndices {
				o.Ns = s.NsMedian
			}
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b Overview) int {
		if a.AsFormula != b.AsFormula {
			return map[bool]int{true: -1, false: 1}[a.AsFormula]
		}
		return cmp.Compare(times(a.Worst), times(b.Worst))
	})
	return all
}

// Short returns the report in about five sentences for a reader from outside the
// field: what was measured, which hashes to use, which not, which add nothing, and
// what they cost. It returns none for a report without rates of families.
func Short(r *hashlab.Report) []string {
	all := Overviews(r)
	if len(all) == 0 {
		return nil
	}
	corpora := hashlab.Distinct(hashlab.Filter(r.FPR, func(f hashlab.FPRRow) bool { return !f.FullSize }), func(f hashlab.FPRRow) string { return f.Corpus })
	sentences := []string{
		fmt.Sprintf("A Bloom filter answers “not listed”, which is always true, or “maybe listed”, which is sometimes wrong; here %s its bits, over %s of keys, and the share of wrong answers is compared with what the textbook promises.",
			text.Count(len(all), "family of hashes chooses", "families of hashes choose"), text.Count(len(corpora), "kind", "kinds")),
		use(all),
	}
	for _, sentence := range []string{avoid(all), idle(r), cost(all)} {
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return sentences
}

// use says which families to use.
func use(all []Overview) string {
	good := labels(hashlab.Filter(all, func(o Overview) bool { return o.AsFormula }))
	if len(good) == 0 {
		return "No family was shown to be wrong as rarely as the textbook promises over every kind of key."
	}
	return "Use " + Or(good) + ": as rarely wrong as the textbook promises, over every kind of key that was measured."
}

// avoid says how much more often the other families are wrong.
func avoid(all []Overview) string {
	var parts []string
	for _, o := range all {
		if !o.AsFormula && !o.Open {
			parts = append(parts, fmt.Sprintf("%s up to %s times (%s)", o.Label, format.Factor(times(o.Worst)), text.Printable(o.Worst.Corpus)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Some are wrong more often than promised, above all over keys that look alike: " + Join(parts) + "."
}

// idle says which functions could be left out.
func idle(r *hashlab.Report) string {
	var parts []string
	for _, f := range Families(r) {
		var names []string
		for _, function := range f.functions {
			if function.idle() {
				names = append(names, function.label())
			}
		}
		if len(names) > 0 && !f.control {
			parts = append(parts, fmt.Sprintf("%s in %s", Join(names), f.Label))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Some hashes add nothing over most kinds of keys and only cost time: " + strings.Join(parts, "; ") + "."
}

// cost says how long the families take for the indices of a key.
func cost(all []Overview) string {
	all = hashlab.Filter(all, func(o Overview) bool { return o.Ns > 0 })
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b Overview) int { return cmp.Compare(a.Ns, b.Ns) })
	var parts []string
	for _, o := range all {
		parts = append(parts, fmt.Sprintf("%s %s", o.Label, format.Digits(o.Ns, 3)))
	}
	return fmt.Sprintf("Nanoseconds to hash an address of %d bytes: %s.", TypicalKeyBytes, Join(parts))
}

// labels returns the families' names.
func labels(all []Overview) []string {
	var names []string
	for _, o := range all {
		names = append(names, o.Label)
	}
	return names
}

// Or returns names as a sentence offers them: "a, b or c".
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
