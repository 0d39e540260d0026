package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// report is the result of a run.
type report struct {
	Machine    machine `json:"machine"`
	Reuse      bool    `json:"gate_reuses_connections"`
	Rows       []row   `json:"rows"`
	GateMemory int64   `json:"gate_peak_resident_bytes"`
}

// row is what was measured with one workload, by target and round.
type row struct {
	Workload workload                 `json:"workload"`
	Runs     map[string][]measurement `json:"runs"`
}

// maxRatio is what the gate may take in the first row, as a multiple of direct.
const maxRatio = 2.5

// spread is the median of some figures, and their range.
type spread struct{ median, least, most float64 }

func spreadOf(figures []float64) spread {
	s := slices.Sorted(slices.Values(figures))
	middle := len(s) / 2
	median := s[middle]
	if len(s)%2 == 0 {
		median = (s[middle-1] + s[middle]) / 2
	}
	return spread{median, s[0], s[len(s)-1]}
}

// times are the run times through a target.
func (r row) times(name string) []float64 {
	var t []float64
	for _, m := range r.Runs[name] {
		t = append(t, m.Seconds)
	}
	return t
}

// ratio compares two targets within each round, since a shared machine is not
// equally fast in all of them.
func (r row) ratio(name, to string) spread {
	var ratios []float64
	base := r.times(to)
	for i, t := range r.times(name) {
		ratios = append(ratios, t/base[i])
	}
	return spreadOf(ratios)
}

// cpuPerMessage is the median processor time of a target, in microseconds.
func (r row) cpuPerMessage(name string) float64 {
	var cpu []float64
	for _, m := range r.Runs[name] {
		cpu = append(cpu, m.CPU/float64(r.Workload.Messages)*1e6)
	}
	return spreadOf(cpu).median
}

// writeText writes the report as Markdown, which is as good to read in a
// terminal.
func (r *report) writeText(w io.Writer) error {
	var b bytes.Buffer
	m := r.Machine
	fmt.Fprintf(&b, "%s, %d cores, %s, load before %s; %s, Postfix %s, HAProxy %s; spamgate at %s.\n",
		m.CPU, m.Cores, m.Kernel, m.Load, m.Go, m.Postfix, m.HAProxy, m.Checkout)
	rounds := len(r.Rows[0].Runs[direct])
	fmt.Fprintf(&b, "Medians of %d rounds, least and most in brackets; ratios are taken within a round.\n", rounds)
	if !r.Reuse {
		fmt.Fprintln(&b, "The gate makes a connection to the sink for each message.")
	}
	for _, row := range r.Rows {
		row.writeText(&b)
	}
	verdict := "met"
	ratio := r.Rows[0].ratio(gate, direct)
	if ratio.median > maxRatio {
		verdict = "missed"
	}
	fmt.Fprintf(&b, "\nTarget for %s: at most %.1f × direct. It is %.2f: %s.\n", r.Rows[0].Workload, maxRatio, ratio.median, verdict)
	if r.GateMemory > 0 {
		fmt.Fprintf(&b, "The gate had at most %d MiB resident.\n", r.GateMemory>>20)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r row) writeText(w io.Writer) {
	const line = "| %-8s | %-22s | %-18s | %-18s | %-13s |\n"
	fmt.Fprintf(w, "\n%s:\n\n", r.Workload)
	fmt.Fprintf(w, line, "through", "time", "× direct", "× HAProxy", "CPU a message")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, name := range []string{direct, haproxy, gate} {
		ratioDirect, ratioHAProxy, cpu := "", "", ""
		if name != direct {
			ratioDirect = r.ratio(name, direct).String()
			cpu = fmt.Sprintf("%.0f µs", r.cpuPerMessage(name))
		}
		if name == gate {
			ratioHAProxy = r.ratio(name, haproxy).String()
		}
		t := spreadOf(r.times(name))
		time := fmt.Sprintf("%.2f s (%.2f–%.2f)", t.median, t.least, t.most)
		fmt.Fprintf(w, line, name, time, ratioDirect, ratioHAProxy, cpu)
	}
}

func (s spread) String() string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.least, s.most)
}
