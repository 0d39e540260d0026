package hashlab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"spamgate/blocklist/bloom"
	"spamgate/internal/text"
)

// standing is a family with its number of functions, as the rates know it.
type standing struct {
	name, label string
	k           int

	rows              int      // with hits enough
	hits, due         float64  // false positives in them, and those that the formula foretells
	comparisons, miss int      // and those whose limits leave the formula out
	full              []FPRRow // the fullest filters, one row a corpus
	worse             FPRRow   // of the rows whose limits are above the formula, the most times its rate
}

// times is how many times the formula's the measured rate is.
func (f FPRRow) times() float64 { return f.Rate.Value / f.Formula }

// standings are the families of the rates, in the report's order.
func (r *Report) standings() []*standing {
	var all []*standing
	for _, f := range r.FPR {
		same := func(c *standing) bool { return c.name == f.Name && c.k == f.K }
		if f.Kind == KindFamily && !slices.ContainsFunc(all, same) {
			all = append(all, &standing{name: f.Name, label: r.Label(f.Name, f.K), k: f.K})
		}
	}
	for _, c := range all {
		of := func(f FPRRow) bool { return f.Name == c.name && f.K == c.k && f.Kind == KindFamily && !f.FullSize }
		for _, f := range r.FPR {
			if of(f) && f.Hits >= enoughHits && f.Formula > 0 {
				c.take(f)
			}
		}
		for _, f := range r.comparisons(of) {
			c.comparisons++
			if !f.holdsFormula() {
				c.miss++
			}
		}
		c.full = r.fullestRows(c.name, c.k)
	}
	return all
}

func (c *standing) take(f FPRRow) {
	c.rows++
	c.hits += float64(f.Hits)
	c.due += f.Formula * float64(f.Trials)
	if f.Rate.Low > f.Formula && (c.worse.Formula == 0 || f.times() > c.worse.times()) {
		c.worse = f
	}
}

// asFormula says that the family has the formula's rate: its limits miss the
// formula as rarely as chance lets them, and but for a tenth at most all its false
// positives together are those foretold, and it acts like as many functions as it
// has. (Fewer that set fewer bits come near the formula in full filters, and far
// above it in emptier ones.)
func (c *standing) asFormula() bool {
	const tenth = 0.1
	return chanceOfMisses(c.comparisons, c.miss) >= surprise && math.Abs(c.hits/c.due-1) <= tenth &&
		!slices.ContainsFunc(c.full, func(f FPRRow) bool { return math.Abs(f.EffectiveK.Value/float64(c.k)-1) > tenth })
}

// expectation is what to expect of a family that differs: over the first corpus,
// over the worst one, and in emptier filters where those are worse.
func (c *standing) expectation() string {
	first := c.full[0]
	act := "act"
	if c.k == 1 {
		act = "acts"
	}
	sentence := fmt.Sprintf("over %s expect a false positive rate of %s at %.3g bits a key, %s times the formula's: its %s %s like %.2f ideal ones",
		text.Printable(first.Corpus), FormatInterval(first.Rate, first.Hits), float64(first.M)/float64(first.N), formatFactor(first.times()),
		text.Count(c.k, "function", "functions"), act, first.EffectiveK.Value)
	if first.Fill < 0.97*first.ExpectedFill {
		sentence += fmt.Sprintf(", in filters that are %.0f%% full instead of %.0f%%", 100*first.Fill, 100*first.ExpectedFill)
	}
	sentence += "."
	worst := slices.MaxFunc(c.full, func(a, b FPRRow) int { return cmp.Compare(a.times(), b.times()) })
	if len(c.full) > 1 {
		sentence += fmt.Sprintf(" Worst over %s: %s times the formula's, like %.2f functions.", text.Printable(worst.Corpus), formatFactor(worst.times()), worst.EffectiveK.Value)
	}
	if c.worse.Formula > 0 && c.worse.times() > worst.times()*1.01 {
		sentence += fmt.Sprintf(" Emptier filters err less often, but up to %s times as often as the formula says (%s, %.3g bits a key).",
			formatFactor(c.worse.times()), text.Printable(c.worse.Corpus), float64(c.worse.M)/float64(c.worse.N))
	}
	return sentence
}

// fullestRows are a family's rows with the largest load, one a corpus, of those
// that have hits enough. Of equal loads it is the larger filter's.
func (r *Report) fullestRows(name string, k int) []FPRRow {
	var all []FPRRow
	for _, f := range r.FPR {
		if f.Name != name || f.K != k || f.Kind != KindFamily || f.FullSize || f.Hits < enoughHits || f.Formula <= 0 {
			continue
		}
		i := slices.IndexFunc(all, func(o FPRRow) bool { return o.Corpus == f.Corpus })
		switch {
		case i < 0:
			all = append(all, f)
		case fuller(f, all[i]):
			all[i] = f
		}
	}
	return all
}

// fuller compares loads, k·n/m, which rounding may move a little.
func fuller(a, b FPRRow) bool {
	x, y := float64(a.N)/float64(a.M), float64(b.N)/float64(b.M)
	return x > y*1.01 || x > y*0.99 && a.M > b.M
}

// rates says of each family how its rate compares with the formula's.
func (s *summary) rates() {
	var good, unknown []string
	var hits, due float64
	for _, c := range s.report.standings() {
		switch {
		case c.rows == 0:
			unknown = append(unknown, c.label)
		case c.asFormula():
			good = append(good, c.label)
			hits, due = hits+c.hits, due+c.due
		default:
			s.say("expect-fpr:"+c.label, true, "%s: %s", c.label, c.expectation())
		}
	}
	if len(good) > 0 {
		s.say("formula", true, "%s: expect what the formula says. Measured were %.2f times the false positives that it foretells.", and(good), hits/due)
	}
	if len(unknown) > 0 {
		s.say("formula", false, "%s: no row has the %d false positives from which on a sentence about the rate is fair; the tables have the limits.",
			and(unknown), enoughHits)
	}
}

// fullSize tells the rates that were measured in the daemon's size.
func (s *summary) fullSize() {
	for _, name := range Names(s.report.FPR, func(f FPRRow) string { return f.Name }) {
		var parts []string
		for _, f := range s.report.FPR {
			if f.Name == name && f.Kind == KindFamily && f.FullSize && f.Hits >= enoughHits && f.Formula > 0 {
				parts = append(parts, fmt.Sprintf("a rate of %s with %s keys, %s times the formula's", FormatRate(f.Rate.Value), text.Number(f.N), FormatRatio(f)))
			}
		}
		if len(parts) > 0 {
			s.say("full-size:"+name, true, "%s measured at full size, %s bits: %s.", name, FormatBits(bloom.ClassicBits), strings.Join(parts, "; "))
		}
	}
}

// scope says what rates in small filters do not tell of a larger one: there an
// index is a hash's low bits, and the bits above them may be better or worse.
func (s *summary) scope() {
	most, classic, full := uint64(0), false, false
	for _, f := range s.report.FPR {
		classic = classic || f.Kind == KindFamily && strings.HasPrefix(f.Name, "classic")
		full = full || f.FullSize
		most = max(most, f.M)
	}
	if classic && !full && most < bloom.ClassicBits {
		s.say("scope", true, "These rates are of filters of at most %s bits, where an index is the low bits of a hash. They don't foretell those of the daemon's classic filter of %s bits: --full measures them.",
			FormatBits(most), FormatBits(bloom.ClassicBits))
	}
}
