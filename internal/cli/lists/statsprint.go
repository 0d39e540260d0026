package lists

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"spamgate/blocklist/bloom"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// print prints the report for people.
func (r *statsReport) print(w io.Writer) {
	r.printFilter(w)
	r.printListShares(w)
	r.printKinds(w)
}

// printFilter prints the details of the configured filter.
func (r *statsReport) printFilter(w io.Writer) {
	f := r.Filter
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-13s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "filter: %s\n", kindAndFamily(f.Kind, f.Family))
	parts := ""
	if f.Parts > 1 {
		parts = fmt.Sprintf(", %d parts", f.Parts)
	}
	line("memory", "%s (%s bits%s)", term.ByteSize(int64(f.Bytes)), text.Number(f.Bits), parts)
	if f.Hashes > 0 {
		line("hashes", "%d", f.Hashes)
	}
	if f.Capacity > 0 {
		line("capacity", "%s keys", text.Number(uint64(f.Capacity)))
	}
	if f.FillRatio > 0 {
		line("fill ratio", "%s", term.SmallText(f.FillRatio))
	}
	if f.Keys > 0 {
		line("keys", "%s%s", text.Number(f.Keys), f.estimated())
	}
	line("expected FPR", "%s", f.expected())
	line("measured FPR", "%s", measured(f.False, f.Probes))
	if f.SimilarProbes > 0 {
		line("  resembling", "%s", measured(f.SimilarFalse, f.SimilarProbes))
		line("", "(names like the lists' own: %s changed)", f.SimilarChange)
	}
	if g := r.Gate; g != nil {
		lookups := fmt.Sprintf("%s lookups, %s maybes", text.Number(g.Lookups), text.Number(g.Maybes))
		if g.FalseMaybes != nil {
			lookups += fmt.Sprintf(", %s of them false", text.Number(*g.FalseMaybes))
		}
		line("running gate", "%s", lookups)
	}
	if r.Warning != "" {
		term.PrintWrapped(w, "  warning: ", r.Warning)
	}
}

// estimated says how many keys the bits suggest.
func (k *kindStats) estimated() string {
	if k.FillRatio == 0 || k.EstimatedKeys == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s estimated from the fill ratio)", text.Number(uint64(math.Round(k.EstimatedKeys))))
}

// expected formats the expected rate, and what was computed if that is another.
func (k *kindStats) expected() string {
	rate := term.FPR(float64(k.ExpectedFPR))
	if float64(k.ExpectedFPR) == float64(k.ComputedFPR) {
		return rate
	}
	if k.SimilarFalse == 0 {
		rate = "up to " + rate
	}
	return fmt.Sprintf("%s, as measured (%s by the formula)", rate, term.FPR(float64(k.ComputedFPR)))
}

// measured formats a measured rate with its interval.
func measured(wrong, probes int) string {
	low, high := bloom.Limits(wrong, probes)
	if wrong == 0 {
		return fmt.Sprintf("below %s (0 of %s names)", term.SmallText(high), text.Number(probes))
	}
	return fmt.Sprintf("%.2g (%.2g to %.2g; %s of %s names)", float64(wrong)/float64(probes), low, high, text.Number(wrong), text.Number(probes))
}

// measuredShort formats a measured rate for a column.
func measuredShort(wrong, probes int) string {
	switch _, high := bloom.Limits(wrong, probes); {
	case probes == 0:
		return "-"
	case wrong == 0:
		return "< " + term.SmallText(high)
	}
	return term.SmallText(float64(wrong) / float64(probes))
}

func (r *statsReport) printListShares(w io.Writer) {
	fmt.Fprintf(w, "\n%-30s %13s %12s %10s %8s\n", "LIST", "ENTRIES", "INDEX", "FILL ALONE", "FORMULA")
	for _, l := range r.Lists {
		fmt.Fprintf(w, "%-30s %13s %12s %10s %8s\n", l.Name, text.Number(l.Entries), term.ByteSize(l.Index), term.SmallText(l.FillRatio), term.SmallFPR(float64(l.FPR)))
	}
}

// printKinds compares the kinds; the configured one has a mark.
func (r *statsReport) printKinds(w io.Writer) {
	if len(r.Kinds) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %-9s %-12s %10s %8s %7s %9s %7s %7s\n", "KIND", "FAMILY", "MEMORY", "BUILD", "FILL", "EXPECTED", "RANDOM", "ALIKE")
	for i := range r.Kinds {
		k := &r.Kinds[i]
		mark := " "
		if k.Configured {
			mark = "*"
		}
		if k.Error != "" {
			term.PrintWrapped(w, fmt.Sprintf("%s %-9s ", mark, k.Kind), "cannot be made: "+k.Error)
			continue
		}
		fill := "-"
		if k.FillRatio > 0 {
			fill = term.SmallText(k.FillRatio)
		}
		fmt.Fprintf(w, "%s %-9s %-12s %10s %8s %7s %9s %7s %7s\n", mark, k.Kind, k.Family, term.ByteSize(int64(k.Bytes)), secondsText(k.BuildSeconds), fill,
			term.SmallFPR(float64(k.ExpectedFPR)), measuredShort(k.False, k.Probes), measuredShort(k.SimilarFalse, k.SimilarProbes))
	}
	fmt.Fprint(w, "(* is configured; the last three columns are false positive rates: expected, and\n"+
		"measured with random names and with names that resemble entries)\n")
}

// secondsText formats a time in a suitable unit.
func secondsText(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return strings.Replace(d.Round(time.Microsecond).String(), "µs", " µs", 1)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", s)
	}
}
