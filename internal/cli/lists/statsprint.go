package lists

import (
	"fmt"
	"io"
	"strings"
	"time"

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
	line("expected FPR", "%s", term.FPR(f.ExpectedFPR))
	line("measured FPR", "%s", f.measured())
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

// measured formats the measured rate. If none of n probes passed, the rate is below 3/n with
// 95% confidence (the rule of three).
func (k *kindStats) measured() string {
	if k.False == 0 {
		return fmt.Sprintf("below %s (0 of %s names)", term.SmallText(3/float64(k.Probes)), text.Number(k.Probes))
	}
	return fmt.Sprintf("%s (%s of %s names)", term.SmallText(float64(k.False)/float64(k.Probes)), text.Number(k.False), text.Number(k.Probes))
}

// measuredShort formats the measured rate for a column.
func (k *kindStats) measuredShort() string {
	if k.False == 0 {
		return "< " + term.SmallText(3/float64(k.Probes))
	}
	return term.SmallText(float64(k.False) / float64(k.Probes))
}

func (r *statsReport) printListShares(w io.Writer) {
	fmt.Fprintf(w, "\n%-30s %13s %12s %10s %8s\n", "LIST", "ENTRIES", "INDEX", "FILL ALONE", "FPR")
	for _, l := range r.Lists {
		fmt.Fprintf(w, "%-30s %13s %12s %10s %8s\n", l.Name, text.Number(l.Entries), term.ByteSize(l.Index), term.SmallText(l.FillRatio), term.SmallFPR(l.FPR))
	}
}

// printKinds compares the kinds; the configured one has a mark.
func (r *statsReport) printKinds(w io.Writer) {
	if len(r.Kinds) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %-9s %-12s %10s %9s %7s %12s %12s\n", "KIND", "FAMILY", "MEMORY", "BUILD", "FILL", "EXPECTED FPR", "MEASURED FPR")
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
		fmt.Fprintf(w, "%s %-9s %-12s %10s %9s %7s %12s %12s\n", mark, k.Kind, k.Family, term.ByteSize(int64(k.Bytes)), secondsText(k.BuildSeconds), fill,
			term.SmallFPR(k.ExpectedFPR), k.measuredShort())
	}
	fmt.Fprint(w, "(* is configured)\n")
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
