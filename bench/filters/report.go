package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
)

// report is the result of a run.
type report struct {
	Go      string  `json:"go"`
	System  string  `json:"system"`
	CPUs    int     `json:"cpus"`
	Entries int     `json:"entries"`
	Trials  int     `json:"trials"`
	Lookups int     `json:"lookups"`
	FPR     float64 `json:"fpr"` // which all but the fuse filters are made for
	Bits    uint64  `json:"bits"`
	Hashes  int     `json:"hashes"`

	Filters []result `json:"filters"`
}

// result is the result of one filter. Times are in nanoseconds a key, one for each
// turn.
type result struct {
	Name           string    `json:"name"`
	BytesPerKey    float64   `json:"bytes_per_key"`
	FalsePositives int       `json:"false_positives"`
	Build          []float64 `json:"build"`
	Absent         []float64 `json:"absent"`
	Present        []float64 `json:"present"`
}

func newReport(o options, p plan) *report {
	r := &report{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Entries: o.entries, Trials: o.trials, Lookups: o.lookups,
		FPR: p.fpr, Bits: p.bits, Hashes: p.hashes,
	}
	for _, c := range p.contenders() {
		r.Filters = append(r.Filters, result{Name: c.name})
	}
	return r
}

// writeText prints the table. A ratio is to the rival in the same turn, and below 1
// if the rival is slower.
func (r *report) writeText(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%s, %s, %d CPUs
%d entries; %d absent keys looked up for the rate, %d keys a turn for the times
%s: %d bits and %d hashes for a rate of %.2g, the classic filter's by formula
times in ns a key, medians, and as a ratio to %s in the same turn

%-29s %5s  %8s
%-29s %5s  %8s %7s  %7s %5s  %7s %5s  %7s %5s
`, r.Go, r.System, r.CPUs, r.Entries, r.Trials, r.Lookups, rival, r.Bits, r.Hashes, r.FPR, rival,
		"", "bytes", "false",
		"filter", "/key", "positive", "rate", "build", "ratio", "absent", "ratio", "present", "ratio")
	if err != nil {
		return err
	}
	base := r.Filters[slices.IndexFunc(r.Filters, func(f result) bool { return f.Name == rival })]
	for _, f := range r.Filters {
		_, err := fmt.Fprintf(w, "%-29s %5.2f  %8d %7.1e  %7.1f %5.2f  %7.1f %5.2f  %7.1f %5.2f\n",
			f.Name, f.BytesPerKey, f.FalsePositives, float64(f.FalsePositives)/float64(r.Trials),
			median(f.Build), ratio(f.Build, base.Build),
			median(f.Absent), ratio(f.Absent, base.Absent),
			median(f.Present), ratio(f.Present, base.Present))
		if err != nil {
			return err
		}
	}
	return nil
}

// ratio returns the median of a's turns, each divided by the same turn of b.
func ratio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

// median returns the median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
