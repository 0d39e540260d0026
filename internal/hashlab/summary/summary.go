// Package summary says in plain sentences what the numbers of a report of package
// hashlab show.
package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/text"
)

// Thresholds of the sentences. They are conventions, not results.
const (
	// enoughHits is the number of false positives that a sentence about a rate
	// needs: with 100 the binomial noise is a tenth.
	enoughHits = 100

	// enoughExpected is the number of false positives that the formula must
	// predict for a row to count as a comparison with it: the limits of a row
	// without hits cannot miss the formula on both sides.
	enoughExpected = 10

	// fullWorth is the worth from which on an index function does its share of
	// the work, and noWorth the worth below which it adds nothing. See [Worth].
	fullWorth, noWorth = 0.9, 0.1

	// surprise is the probability below which so many misses of the formula are
	// not due to chance.
	surprise = 0.001

	// A Cohen's w of 0.1 is called small (Cohen 1988), and a mean avalanche bias
	// of 0.1 moves an output bit's probability from 0.50 to 0.55. Smaller effects
	// are not mentioned.
	smallEffect, smallBias = 0.1, 0.1

	// Significant is the level of the Holm-corrected tests.
	Significant = 0.05

	// Related is the kappa from which on two functions are called related.
	Related = 0.1

	// TypicalKeyBytes is the key length, an address's, for which speeds are given
	// if there is no room for all lengths.
	TypicalKeyBytes = 33
)

// Of returns the sentences about a report. Each is computed from the numbers; if
// an expected effect is absent, the sentence says so and does not hold. What was
// not measured has no sentence. The names are
//
//	interrupted        the run ended early
//	control            the ideal control agrees with the formula: the laboratory measures right
//	formula            families whose rate is shown to be what the formula says
//	formula-open       families of which neither that nor a difference is shown
//	expect-fpr:FAMILY  the rate of a family that differs: ratio and effective k
//	scope              what the rates do not tell about the daemon's filter
//	full-size:FAMILY   rates in filters of the daemon's size, of a full run
//	carry:FAMILY       which index functions do their share of the work, which add nothing
//	pjw-is-elf         PJW and ELF are one function
//	bp-collapse        BP has few different values
//	messages           rates per message against those per key
//	uniformity         which hashes spread keys unevenly
//	avalanche          which hashes' bits depend on too little
//	worst-bit          of which hashes chance explains the worst bit and pair of bits (BIC)
//	speed              fastest and slowest family
func Of(r *hashlab.Report) []hashlab.Finding {
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
	s.worstBits()
	s.speed()
	return s.findings
}

// summary collects the sentences about a report.
type summary struct {
	report   *hashlab.Report
	findings []hashlab.Finding
}

// say adds a sentence.
func (s *summary) say(name string, holds bool, sentence string, args ...any) {
	s.findings = append(s.findings, hashlab.Finding{Name: name, Holds: holds, Text: fmt.Sprintf(sentence, args...)})
}

// Range is the range of a number over several rows, and the corpus of the largest.
type Range struct {
	Low, High float64
	Worst     string
	Rows      int
}

// Add extends the range to x, a number over corpus.
func (r *Range) Add(x float64, corpus string) {
	if r.Rows == 0 || x < r.Low {
		r.Low = x
	}
	if r.Rows == 0 || x > r.High {
		r.High, r.Worst = x, corpus
	}
	r.Rows++
}

// String returns the range as "1.85 to 2.03", or one number if both look alike.
func (r Range) String() string {
	return r.format(func(x float64) string { return format.Digits(x, 3) })
}

// Percent returns the range as "93% to 100%".
func (r Range) Percent() string {
	return r.format(func(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) })
}

func (r Range) format(number func(float64) string) string {
	low, high := number(r.Low), number(r.High)
	if low == high {
		return low
	}
	return low + " to " + high
}

// messages compares the rate per message with the rate that independent keys
// would give, over all families together: the rate of a single row depends on a
// few keys, such as a common domain, that are in many messages.
func (s *summary) messages() {
	var keys, ratios Range
	hits, expected := 0.0, 0.0
	for _, m := range s.report.Messages {
		if m.Kind == hashlab.KindFamily && m.Hits >= enoughHits && m.FromPerKey > 0 {
			hits += float64(m.Hits)
			expected += m.FromPerKey * float64(m.Messages)
			ratios.Add(m.Rate.Value/m.FromPerKey, m.Corpus)
			keys.Add(m.KeysAMail, m.Corpus)
		}
	}
	if ratios.Rows == 0 {
		return
	}
	s.say("messages", hits <= 2*expected, "A message has %s candidate keys on average, each of which may be a false positive. All families together had %.2f times "+
		"the false positives per message that as many independent keys would have. Single rows had %s times: one key, such as com, is in many messages, "+
		"and a message's keys are of other kinds than the corpus's own.",
		keys, hits/expected, ratios)
}

// speed names the fastest and the slowest family.
func (s *summary) speed() {
	rows := hashlab.Filter(s.report.Speed, func(f hashlab.SpeedRow) bool {
		return f.Kind == hashlab.KindFamily && f.KeyBytes == TypicalKeyBytes && f.What == hashlab.AllIndices && f.NsMedian > 0
	})
	if len(rows) < 2 {
		return
	}
	slices.SortStableFunc(rows, func(a, b hashlab.SpeedRow) int { return cmp.Compare(a.NsMedian, b.NsMedian) })
	fast, slow := rows[0], rows[len(rows)-1]
	s.say("speed", true, "Fastest is %s: %s ns for its %s of a key of %d bytes; slowest %s: %s ns for its %d.",
		Label(s.report, fast.Name, fast.K), format.Digits(fast.NsMedian, 3), text.Count(fast.K, "index", "indices"), fast.KeyBytes,
		Label(s.report, slow.Name, slow.K), format.Digits(slow.NsMedian, 3), slow.K)
}

// Label returns a family's name, which may be a file's, for a sentence, with its k if the report has the family with
// several.
func Label(r *hashlab.Report, name string, k int) string {
	differs := func(n string, other int) bool { return n == name && other != k }
	if slices.ContainsFunc(r.FPR, func(f hashlab.FPRRow) bool { return differs(f.Name, f.K) }) ||
		slices.ContainsFunc(r.PassRates, func(p hashlab.PassRow) bool { return differs(p.Family, p.K) }) {
		return fmt.Sprintf("%s (k = %d)", text.Printable(name), k)
	}
	return text.Printable(name)
}

// Join returns names as a sentence lists them: "a, b and c".
func Join(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// chanceOfMisses returns the probability that at least so many of n intervals of
// 95% miss the value that they estimate.
func chanceOfMisses(n, misses int) float64 {
	const miss = 0.05
	fewer := 0.0
	for i := range misses {
		choose, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		fewer += math.Exp(choose - a - b + float64(i)*math.Log(miss) + float64(n-i)*math.Log(1-miss))
	}
	return 1 - fewer
}
