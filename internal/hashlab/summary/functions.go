package summary

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

// Worth returns how much of an ideal function's work an index function does,
// ln(pass rate) / ln(fill): 1 if absent keys pass it as rarely as the fill ratio
// says, 0 if all of them pass. It is not ok if it cannot be computed.
func Worth(p hashlab.PassRow) (worth float64, ok bool) {
	rate := p.Rate.Value
	if rate == 0 {
		rate = p.Rate.High
	}
	if rate <= 0 || p.Fill <= 0 || p.Fill >= 1 {
		return 0, false
	}
	return math.Log(rate) / math.Log(p.Fill), true
}

// family is a family with its number of functions.
type family struct {
	name string
	k    int
}

// Family is the pass rates of a family with a number of functions.
type Family struct {
	Label     string
	Rows      []hashlab.PassRow
	control   bool
	functions []function
}

// Families returns the families that have pass rates.
func Families(r *hashlab.Report) []Family {
	var all []Family
	for _, rows := range hashlab.Groups(r.PassRates, func(p hashlab.PassRow) family { return family{p.Family, p.K} }) {
		f := Family{Label: Label(r, rows[0].Family, rows[0].K), Rows: rows, control: hashlab.FamilyKind(rows[0].Family) == hashlab.KindControl}
		for _, rows := range hashlab.Groups(rows, func(p hashlab.PassRow) string { return p.Hash }) {
			if function, ok := newFunction(rows); ok {
				for _, earlier := range f.functions {
					if alwaysSame(r, function.family, earlier.name, function.name) {
						function.twin = earlier.name
						break
					}
				}
				f.functions = append(f.functions, function)
			}
		}
		all = append(all, f)
	}
	return all
}

// AllWork reports whether each function does an ideal function's work over all
// corpora.
func (f Family) AllWork() bool {
	return !slices.ContainsFunc(f.functions, func(f function) bool { return !f.works() })
}

// function is what all corpora say of one index function of a family.
type function struct {
	family, name string
	worth        []float64 // one a corpus
	least        Range     // of minus the worth: its worst corpus is the one with the least
	passes       Range
	weak         bool   // over some corpus it does less than its share
	twin         string // an earlier function with the same index for each key of each corpus
}

// newFunction combines the pass rates of one function. It is not ok if none of
// them has a worth.
func newFunction(rows []hashlab.PassRow) (f function, ok bool) {
	f.family, f.name = rows[0].Family, rows[0].Hash
	for _, p := range rows {
		worth, known := Worth(p)
		if !known {
			continue
		}
		ok = true
		f.worth = append(f.worth, worth)
		f.least.Add(-worth, p.Corpus)
		f.passes.Add(p.Rate.Value, p.Corpus)
		// Noise alone does not make it weak: even the lower limit must be too high.
		f.weak = f.weak || p.Rate.Low > math.Pow(p.Fill, fullWorth)
	}
	return f, ok
}

// label returns the name as a sentence has it: with a sign if it is a number.
func (f function) label() string {
	if _, err := strconv.Atoi(f.name); err == nil {
		return "#" + f.name
	}
	return f.name
}

// idle reports whether the function does nothing over most corpora.
func (f function) idle() bool {
	n := len(hashlab.Filter(f.worth, func(worth float64) bool { return worth < noWorth }))
	return f.twin != "" || 2*n > len(f.worth)
}

// works reports whether the function does an ideal one's work over all corpora,
// as far as the numbers tell.
func (f function) works() bool { return f.twin == "" && !f.weak }

// alwaysSame reports whether two functions of a family were compared and had the
// same index for each key of each corpus.
func alwaysSame(r *hashlab.Report, family, a, b string) bool {
	same, compared := true, false
	for _, g := range r.Agreement {
		if x, y, ok := pair(g, a, b); ok && g.Family == family {
			compared = true
			same = same && g.Same[x][y] == 1
		}
	}
	return same && compared
}

// pair returns the numbers of two functions in an agreement that has both.
func pair(g hashlab.Agreement, a, b string) (x, y int, ok bool) {
	x, y = slices.Index(g.Names, a), slices.Index(g.Names, b)
	return x, y, x >= 0 && y >= 0
}

// functions says which index functions of each family do their share of the work,
// and which add nothing.
func (s *summary) functions() {
	overAll, overMost, overWorst, overOne := " over all corpora", " over most corpora", " over their worst corpus", " over any corpus"
	alone := len(hashlab.Distinct(s.report.PassRates, func(p hashlab.PassRow) string { return p.Corpus })) == 1
	if alone {
		overAll, overMost, overWorst, overOne = "", "", "", ""
	}
	var whole []string
	for _, f := range Families(s.report) {
		if f.control {
			continue
		}
		carry, weak, idle := sortFunctions(f.functions, alone)
		n := len(f.functions)
		if len(carry) == n {
			whole = append(whole, f.Label)
			continue
		}
		verb := "carry"
		if len(carry) == 1 {
			verb = "carries"
		}
		sentence := fmt.Sprintf("%s: %d of %d functions %s it%s: %s.", f.Label, len(carry), n, verb, overAll, Join(carry))
		if len(carry) == 0 {
			sentence = fmt.Sprintf("%s: none of %d functions carries it%s.", f.Label, n, overAll)
		}
		if len(weak) > 0 {
			sentence += fmt.Sprintf(" Others do only a part of an ideal function's work%s: %s.", overWorst, Join(weak))
		}
		if len(idle) > 0 {
			sentence += fmt.Sprintf(" Nothing is added%s by %s.", overMost, Join(idle))
		}
		s.say("carry:"+f.Label, true, "%s", sentence)
	}
	if len(whole) > 0 {
		s.say("carry", true, "%s: every function carries its family: none was found to do less than %.0f%% of an ideal one's work%s.", Join(whole), 100*fullWorth, overOne)
	}
}

// sortFunctions names the functions that do their share of the work, those that
// do a part of it (with the worst corpus unless there is only one), and those
// that do nothing.
func sortFunctions(all []function, oneCorpus bool) (carry, weak, idle []string) {
	for _, f := range all {
		part := fmt.Sprintf("%s (%.0f%%", f.label(), 100*max(0, -f.least.High))
		switch {
		case f.twin != "":
			idle = append(idle, fmt.Sprintf("%s (always the same as %s)", f.label(), f.twin))
		case f.idle():
			idle = append(idle, fmt.Sprintf("%s (lets %s of absent keys pass)", f.label(), f.passes.Percent()))
		case f.works():
			carry = append(carry, f.label())
		case oneCorpus:
			weak = append(weak, part+")")
		default:
			weak = append(weak, part+", "+text.Printable(f.least.Worst)+")")
		}
	}
	return carry, weak, idle
}

// pjwIsELF says whether PJW and ELF are one function.
func (s *summary) pjwIsELF() {
	var least Range
	for _, g := range s.report.Agreement {
		if x, y, ok := pair(g, "PJW", "ELF"); ok {
			least.Add(-g.Same[x][y], g.Corpus)
		}
	}
	switch {
	case least.Rows == 0:
	case least.High == -1:
		s.say("pjw-is-elf", true, "PJW and ELF gave the same index for every key: one function under two names.")
	default:
		s.say("pjw-is-elf", false, "PJW and ELF are different functions: over %s they gave the same index for %.4g%% of the keys.",
			text.Printable(least.Worst), -100*least.High)
	}
}
