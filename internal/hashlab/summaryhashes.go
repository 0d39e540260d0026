package hashlab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"spamgate/internal/text"
)

// Worth is how much of an ideal function's work an index function does: 1 where
// absent keys pass it as rarely as the fill ratio says, 0 where all of them do.
func (p PassRow) Worth() (float64, bool) {
	rate := p.Rate.Value
	if rate == 0 {
		rate = p.Rate.High
	}
	if rate <= 0 || p.Fill <= 0 || p.Fill >= 1 {
		return 0, false
	}
	return math.Log(rate) / math.Log(p.Fill), true
}

// fallsShort says that the function does less than carries its family, and that
// more than noise says so: even the lower limit of its pass rate is too high.
func (p PassRow) fallsShort() bool {
	return p.Rate.Low > math.Pow(p.Fill, carries)
}

// function is what all corpora say of one index function of a family.
type function struct {
	name   string
	worth  []float64 // a number a corpus
	least  extent    // of minus the worth: its worst corpus is where it does least
	passes extent
	short  bool   // over some corpus it falls short of carrying its family
	twin   string // an earlier function with the same index for each key of each corpus
}

// label is the name in a sentence, where a bare number would be taken for one.
func (f function) label() string {
	if _, err := strconv.Atoi(f.name); err == nil {
		return "#" + f.name
	}
	return f.name
}

// idle says that the function does nothing over most corpora.
func (f function) idle() bool {
	n := 0
	for _, w := range f.worth {
		if w < idles {
			n++
		}
	}
	return f.twin != "" || 2*n > len(f.worth)
}

// carries says that the function does an ideal one's work over all corpora, as
// far as can be told.
func (f function) carries() bool { return f.twin == "" && !f.short }

// family is a family with its number of functions.
type family struct {
	name string
	k    int
}

// passFamilies are the families that have pass rates.
func (r *Report) passFamilies() []family {
	var all []family
	for _, p := range r.PassRates {
		if f := (family{p.Family, p.K}); !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// Label names a family, with its k where the report has it with several.
func (r *Report) Label(name string, k int) string {
	others := func(n string, o int) bool { return n == name && o != k }
	if slices.ContainsFunc(r.FPR, func(f FPRRow) bool { return others(f.Name, f.K) }) ||
		slices.ContainsFunc(r.PassRates, func(p PassRow) bool { return others(p.Family, p.K) }) {
		return fmt.Sprintf("%s (k = %d)", name, k)
	}
	return name
}

// functionsOf gathers the index functions of a family.
func (r *Report) functionsOf(of family) []function {
	var all []function
	for _, p := range r.PassRates {
		worth, ok := p.Worth()
		if p.Family != of.name || p.K != of.k || !ok {
			continue
		}
		i := slices.IndexFunc(all, func(f function) bool { return f.name == p.Hash })
		if i < 0 {
			i = len(all)
			all = append(all, function{name: p.Hash})
		}
		all[i].worth = append(all[i].worth, worth)
		all[i].least.take(-worth, p.Corpus)
		all[i].passes.take(p.Rate.Value, p.Corpus)
		all[i].short = all[i].short || p.fallsShort()
	}
	for i := range all {
		for _, earlier := range all[:i] {
			if same, corpora := r.sameEverywhere(of.name, earlier.name, all[i].name); same && corpora > 0 {
				all[i].twin = earlier.name
				break
			}
		}
	}
	return all
}

// sameEverywhere reports whether two functions of a family had the same index
// for each key, and over how many corpora they were compared.
func (r *Report) sameEverywhere(family, a, b string) (same bool, corpora int) {
	same = true
	for _, g := range r.Agreement {
		i, j := slices.Index(g.Names, a), slices.Index(g.Names, b)
		if g.Family != family || i < 0 || j < 0 {
			continue
		}
		corpora++
		same = same && g.Same[i][j] == 1
	}
	return same, corpora
}

// functions says which index functions carry each family and which add nothing.
func (s *summary) functions() {
	// What is said of several corpora, and of one.
	overAll, overMost, overWorst, overOne := " over all corpora", " over most corpora", " over their worst corpus", " over any corpus"
	one := len(Names(s.report.PassRates, func(p PassRow) string { return p.Corpus })) == 1
	if one {
		overAll, overMost, overWorst, overOne = "", "", "", ""
	}
	var whole []string
	for _, f := range s.report.passFamilies() {
		if familyKind(f.name) == KindControl {
			continue
		}
		all, family := s.report.functionsOf(f), s.report.Label(f.name, f.k)
		carry, weak, idle := judge(all, one)
		if len(carry) == len(all) {
			whole = append(whole, family)
			continue
		}
		verb := "carry"
		if len(carry) == 1 {
			verb = "carries"
		}
		text := fmt.Sprintf("%s: %d of %d functions %s it%s: %s.", family, len(carry), len(all), verb, overAll, and(carry))
		if len(carry) == 0 {
			text = fmt.Sprintf("%s: none of %d functions carries it%s.", family, len(all), overAll)
		}
		if len(weak) > 0 {
			text += fmt.Sprintf(" Others do only a part of an ideal function's work%s: %s.", overWorst, and(weak))
		}
		if len(idle) > 0 {
			text += fmt.Sprintf(" Nothing is added%s by %s.", overMost, and(idle))
		}
		s.say("carry:"+family, true, "%s", text)
	}
	if len(whole) > 0 {
		s.say("carry", true, "%s: every function carries its family: none was found to do less than %.0f%% of an ideal one's work%s.", and(whole), 100*carries, overOne)
	}
}

// judge names the functions that carry their family, those that do a part of their
// work, with the corpus where it is least unless there is but one, and those that
// do nothing.
func judge(all []function, one bool) (carry, weak, idle []string) {
	for _, f := range all {
		switch {
		case f.twin != "":
			idle = append(idle, fmt.Sprintf("%s (always the same as %s)", f.label(), f.twin))
		case f.idle():
			idle = append(idle, fmt.Sprintf("%s (lets %s of absent keys pass)", f.label(), percents(f.passes)))
		case f.carries():
			carry = append(carry, f.label())
		case one:
			weak = append(weak, fmt.Sprintf("%s (%.0f%%)", f.label(), 100*max(0, -f.least.high)))
		default:
			weak = append(weak, fmt.Sprintf("%s (%.0f%%, %s)", f.label(), 100*max(0, -f.least.high), text.Printable(f.least.worst)))
		}
	}
	return carry, weak, idle
}

// percents writes parts of one as "93% to 100%".
func percents(e extent) string {
	low, high := fmt.Sprintf("%.0f%%", 100*e.low), fmt.Sprintf("%.0f%%", 100*e.high)
	if low == high {
		return low
	}
	return low + " to " + high
}

// pjwIsELF says whether the two are one function.
func (s *summary) pjwIsELF() {
	var least extent
	for _, g := range s.report.Agreement {
		if i, j := slices.Index(g.Names, "PJW"), slices.Index(g.Names, "ELF"); i >= 0 && j >= 0 {
			least.take(-g.Same[i][j], g.Corpus)
		}
	}
	switch {
	case least.rows == 0:
	case least.high == -1:
		s.say("pjw-is-elf", true, "PJW and ELF gave the same index for every key: one function under two names.")
	default:
		s.say("pjw-is-elf", false, "PJW and ELF are different functions: over %s they gave the same index for %.4g%% of the keys.",
			text.Printable(least.worst), -100*least.high)
	}
}

// bpCollapse says how few values BP has, where an ideal hash has the most.
func (s *summary) bpCollapse() {
	var worst Collision
	for _, c := range s.report.Collisions {
		if c.Name == "BP" && (worst.Keys == 0 || excess(c) > excess(worst)) {
			worst = c
		}
	}
	if worst.Keys == 0 {
		return
	}
	// A tenth of the keys lost for nothing is no bad luck: the expectation is
	// taken off, and its square root is far below that.
	const collapse = 0.1
	expected := float64(worst.Keys) - worst.Expected
	if excess(worst) >= collapse {
		s.say("bp-collapse", true, "BP collapses: over %s its %d bits have %s for %s keys, where an ideal hash has %s.",
			text.Printable(worst.Corpus), worst.Bits, text.Count(worst.Distinct, "different value", "different values"), text.Number(worst.Keys), text.Number(int(expected+0.5)))
		return
	}
	s.say("bp-collapse", false, "BP does not collapse here: it has at least %.0f%% of the different values that an ideal hash has.", 100*float64(worst.Distinct)/expected)
}

// excess is the part of the keys that collide beyond an ideal hash's.
func excess(c Collision) float64 { return (float64(c.Collisions) - c.Expected) / float64(c.Keys) }

// verdicts counts a hash's tests and those that it failed.
type verdicts struct {
	name          string
	failed, total int
	worst         extent
}

// verdict adds a test of a hash.
func verdict(all []verdicts, name, corpus string, failed bool, size float64) []verdicts {
	i := slices.IndexFunc(all, func(t verdicts) bool { return t.name == name })
	if i < 0 {
		i = len(all)
		all = append(all, verdicts{name: name})
	}
	all[i].total++
	all[i].worst.take(size, corpus)
	if failed {
		all[i].failed++
	}
	return all
}

// uneven says that a test found an uneven spread that matters.
func (u Uniformity) uneven() bool { return u.PHolm < significant && u.ExcessEffect >= effectToTell }

// uniformity says which hashes spread keys unevenly.
func (s *summary) uniformity() {
	var all []verdicts
	for _, u := range s.report.Uniformity {
		all = verdict(all, u.Name, u.Corpus, u.uneven(), u.ExcessEffect)
	}
	if len(all) == 0 {
		return
	}
	var most, some, never []string
	for _, v := range all {
		switch {
		case v.failed == 0:
			never = append(never, v.name)
		case 2*v.failed > v.total:
			most = append(most, v.name)
		default:
			some = append(some, fmt.Sprintf("%s (%d of %d)", v.name, v.failed, v.total))
		}
	}
	var parts []string
	for _, p := range []struct {
		when  string
		names []string
	}{{"in most tests by ", most}, {"in some by ", some}, {"in none by ", never}} {
		if len(p.names) > 0 {
			parts = append(parts, p.when+and(p.names))
		}
	}
	s.say("uniformity", len(most)+len(some) > 0, "Low or high bits are spread unevenly (p < %g after Holm, Cohen's w at least %g beyond chance): %s.", significant, effectToTell, strings.Join(parts, "; "))
}

// biased says that a hash's bits depend on too little of the key's: more than
// chance makes it look.
func (a Avalanche) biased() bool { return a.MeanBias-a.Noise >= biasToTell }

// avalanche says whose output bits ignore input bits.
func (s *summary) avalanche() {
	var all []verdicts
	for _, a := range s.report.Avalanche {
		all = verdict(all, a.Name, a.Corpus, a.biased(), a.MeanBias)
	}
	if len(all) == 0 {
		return
	}
	var mix, not []string
	for _, t := range all {
		if t.failed == 0 {
			mix = append(mix, t.name)
		} else {
			not = append(not, t.name)
		}
	}
	switch {
	case len(not) == 0:
		s.say("avalanche", false, "Every hash lets each bit of a key flip each bit of the value about half of the time.")
	case len(mix) == 0:
		s.say("avalanche", true, "No hash lets each bit of a key flip each bit of the value half of the time, as a good one does.")
	default:
		s.say("avalanche", true, "Each bit of a key flips each bit of the value about half of the time, as it should (mean bias below %g beyond chance), with %s only; not with %s.", biasToTell, and(mix), and(not))
	}
}
