package hashlab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"spamgate/internal/text"
)

// What the summary's sentences call what. They are conventions, not findings.
const (
	// enoughHits is the least number of false positives that a sentence about a
	// rate rests on: with 100 the binomial noise is a tenth.
	enoughHits = 100

	// enoughDue is how many false positives the formula must foretell for limits
	// to be able to miss it on either side, as those of a row without hits can't.
	enoughDue = 10

	// carries is the worth from which on an index function carries its share,
	// and idles the worth below which it adds nothing. Worth is
	// ln(pass rate) / ln(fill): 1 for an ideal function, 0 for one that lets
	// every absent key pass.
	carries, idles = 0.9, 0.1

	// surprise is the probability below which so many misses of the formula are
	// no chance.
	surprise = 0.001

	// The least sizes of effects to speak of: a Cohen's w of 0.1 is called
	// small (Cohen 1988), and a mean avalanche bias of 0.1 moves an output bit's
	// probability from 0.50 to 0.55.
	effectToTell, biasToTell = 0.1, 0.1

	// significant is the level of the Holm-corrected tests.
	significant = 0.05
)

// Summarize says in plain sentences what the numbers of a report show. Each is
// worked out from them; where something expected is not there the sentence says
// so, and does not hold. What was not measured has no sentence. The names are
//
//	interrupted        the run ended early
//	control            the ideal control agrees with the formula: the laboratory measures right
//	formula            families whose rate is what the formula says
//	expect-fpr:FAMILY  the rate of a family that differs: ratio and effective k
//	scope              what is not known of the daemon's filter
//	full-size:FAMILY   rates in filters of the daemon's size, of a full run
//	carry:FAMILY       which index functions carry the family, which add nothing
//	pjw-is-elf         PJW and ELF are one function
//	bp-collapse        BP has few different values
//	messages           rates per message against those per key
//	uniformity         which hashes spread keys unevenly
//	avalanche          which hashes' bits depend on too little
//	speed              fastest and slowest family
func Summarize(r *Report) []Finding {
	s := summary{report: r}
	if r.Interrupted {
		s.say("interrupted", true, "The run was interrupted: only a part is measured.")
	}
	s.control()
	s.rates()
	s.fullSize()
	s.scope()
	s.functions()
	s.pjwIsELF()
	s.bpCollapse()
	s.messages()
	s.uniformity()
	s.avalanche()
	s.speed()
	return s.findings
}

type summary struct {
	report   *Report
	findings []Finding
}

func (s *summary) say(name string, holds bool, format string, args ...any) {
	s.findings = append(s.findings, Finding{name, holds, fmt.Sprintf(format, args...)})
}

// control says whether the ideal hashes had the rate that they must have.
func (s *summary) control() {
	within, rows := 0, s.report.comparisons(func(f FPRRow) bool { return f.Name == idealName })
	for _, f := range rows {
		if f.holdsFormula() {
			within++
		}
	}
	if len(rows) == 0 {
		return
	}
	holds := chanceOfMisses(len(rows), len(rows)-within) >= surprise
	due := len(rows)
	for due > 0 && chanceOfMisses(len(rows), len(rows)-due+1) >= surprise {
		due--
	}
	verdict := fmt.Sprintf("By chance one in twenty misses; fewer than %d would be alarming.", due)
	switch {
	case due == 0:
		verdict = "By chance one in twenty misses; so few can't be alarming."
	case !holds:
		verdict = fmt.Sprintf("That is alarming, since by chance only one in twenty misses: at least %d are due. Don't trust this run's rates.", due)
	}
	s.say("control", holds, "The laboratory itself: the ideal control's 95%% interval holds the textbook formula's rate in %d of %s (each corpus, k and size of filter is one). %s",
		within, text.Count(len(rows), "comparison", "comparisons"), verdict)
}

// holdsFormula says that the row's limits have the formula's rate between them.
func (f FPRRow) holdsFormula() bool { return f.Rate.Low <= f.Formula && f.Formula <= f.Rate.High }

// comparisons are the fullest rows of the subjects that are meant, one for each
// corpus, k and size of filter, where the formula foretells enough hits. The
// other rows are of the same filters with less in them, and miss together with
// it: they are no further evidence.
func (r *Report) comparisons(meant func(FPRRow) bool) []FPRRow {
	var all []FPRRow
	for _, f := range r.FPR {
		if !meant(f) || f.Formula*float64(f.Trials) < enoughDue {
			continue
		}
		i := slices.IndexFunc(all, func(o FPRRow) bool {
			return o.Corpus == f.Corpus && o.Subject == f.Subject && o.K == f.K && o.M == f.M
		})
		switch {
		case i < 0:
			all = append(all, f)
		case f.N > all[i].N:
			all[i] = f
		}
	}
	return all
}

// chanceOfMisses is the probability that at least so many of n intervals of 95%
// miss what they are for.
func chanceOfMisses(n, misses int) float64 {
	const miss = 0.05
	below := 0.0
	for i := range misses {
		choose, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		below += math.Exp(choose - a - b + float64(i)*math.Log(miss) + float64(n-i)*math.Log(1-miss))
	}
	return 1 - below
}

// extent is the range of what several rows say, and the corpus of the largest.
type extent struct {
	low, high float64
	worst     string
	rows      int
}

func (e *extent) take(x float64, corpus string) {
	if e.rows == 0 || x < e.low {
		e.low = x
	}
	if e.rows == 0 || x > e.high {
		e.high, e.worst = x, corpus
	}
	e.rows++
}

// text is "1.85 to 2.03", or one number where the two look alike.
func (e extent) text() string {
	low, high := formatDigits(e.low, 3), formatDigits(e.high, 3)
	if low == high {
		return low
	}
	return low + " to " + high
}

// Names are the different names that rows have, in their order.
func Names[T any](rows []T, name func(T) string) []string {
	var all []string
	for _, r := range rows {
		if !slices.Contains(all, name(r)) {
			all = append(all, name(r))
		}
	}
	return all
}

// messages compares the rate per message with what independent keys would give.
// It is of all families together: a single row's rate hangs on a few keys, such
// as a common domain, that stand in many messages.
func (s *summary) messages() {
	var keys, row extent
	hits, due := 0.0, 0.0
	for _, m := range s.report.Messages {
		if m.Kind == KindFamily && m.Hits >= enoughHits && m.FromPerKey > 0 {
			hits += float64(m.Hits)
			due += m.FromPerKey * float64(m.Messages)
			row.take(m.Rate.Value/m.FromPerKey, m.Corpus)
			keys.take(m.KeysAMail, m.Corpus)
		}
	}
	if row.rows == 0 {
		return
	}
	s.say("messages", hits <= 2*due, "A message has %s candidate keys on average, each of which may be a false positive. All families together had %.2f times "+
		"the false positives per message that as many independent keys would have. Single rows had %s times: one key, such as com, stands in many messages, "+
		"and a message's keys are of other kinds than the corpus's own.",
		keys.text(), hits/due, row.text())
}

// TypicalKeyBytes is the length of a key for which speeds are told where there is
// no room for all: an address's.
const TypicalKeyBytes = 33

// speed names the fastest and the slowest family.
func (s *summary) speed() {
	rows := slices.DeleteFunc(slices.Clone(s.report.Speed), func(f SpeedRow) bool {
		return f.Kind != KindFamily || f.KeyBytes != TypicalKeyBytes || f.What != whatAll || f.NsMedian <= 0
	})
	if len(rows) < 2 {
		return
	}
	slices.SortStableFunc(rows, func(a, b SpeedRow) int { return cmp.Compare(a.NsMedian, b.NsMedian) })
	fast, slow := rows[0], rows[len(rows)-1]
	s.say("speed", true, "Fastest is %s: %s ns for its %s of a key of %d bytes; slowest %s: %s ns for its %d.",
		s.report.Label(fast.Name, fast.K), formatDigits(fast.NsMedian, 3), text.Count(fast.K, "index", "indices"), fast.KeyBytes,
		s.report.Label(slow.Name, slow.K), formatDigits(slow.NsMedian, 3), slow.K)
}

// and joins names as a sentence does.
func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
