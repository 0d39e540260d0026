package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// report is the result of a run.
type report struct {
	Machine    machine      `json:"machine"`
	Reuse      bool         `json:"gate_reuses_connections"`
	Rows       []row        `json:"rows"`
	Refusals   []refusalRow `json:"refusals"`
	Latency    *latencyRow  `json:"latency"`
	GateMemory int64        `json:"gate_peak_resident_bytes"`
}

// row is what was measured with one workload, by target and round.
type row struct {
	Workload workload                 `json:"workload"`
	Runs     map[string][]measurement `json:"runs"`
}

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
	return ratios(r.times(name), r.times(to))
}

// ratios divides the figures of the same round.
func ratios(figures, base []float64) spread {
	var all []float64
	for i, f := range figures {
		all = append(all, f/base[i])
	}
	return spreadOf(all)
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
	for _, row := range r.Refusals {
		row.writeText(&b)
	}
	r.Latency.writeText(&b)
	fmt.Fprintf(&b, "\nThe targets:\n\n")
	fmt.Fprintln(&b, "| what | target | measured | |")
	fmt.Fprintln(&b, "|---|---|---|---|")
	for _, t := range r.targets() {
		verdict := "met"
		if !t.met() {
			verdict = "missed"
		}
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s |\n", t.what, t.bound(), t.unit(t.asked), t.unit(t.measured), verdict)
	}
	if r.GateMemory > 0 {
		fmt.Fprintf(&b, "\nThe gate had at most %d MiB resident.\n", r.GateMemory>>20)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r row) writeText(w io.Writer) {
	const line = "| %-8s | %-22s | %-18s | %-18s | %-13s |\n"
	fmt.Fprintf(w, "\n%s:\n\n", r.Workload)
	fmt.Fprintf(w, line, "through", "time", "× direct", "× HAProxy", "CPU a message")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, name := range names {
		ratioDirect, ratioHAProxy, cpu := "", "", ""
		if name != direct {
			ratioDirect = r.ratio(name, direct).String()
		}
		if name != direct && name != postfix {
			cpu = fmt.Sprintf("%.0f µs", r.cpuPerMessage(name))
		}
		if name != direct && name != haproxy {
			ratioHAProxy = r.ratio(name, haproxy).String()
		}
		t := spreadOf(r.times(name))
		time := fmt.Sprintf("%.2f s (%.2f–%.2f)", t.median, t.least, t.most)
		fmt.Fprintf(w, line, name, time, ratioDirect, ratioHAProxy, cpu)
	}
}

func (r refusalRow) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nListed senders refused, one client, %s in a run, %s:\n\n", thousands(r.Refusals), r.Manner)
	fmt.Fprintln(w, "| by | a second | × Postfix |")
	fmt.Fprintln(w, "|---|---|---|")
	for _, name := range refusers {
		ratio := ""
		if name != postfix {
			ratio = ratios(r.Rates[name], r.Rates[postfix]).String()
		}
		s := spreadOf(r.Rates[name])
		fmt.Fprintf(w, "| %s | %.0f (%.0f–%.0f) | %s |\n", name, s.median, s.least, s.most, ratio)
	}
}

func (r *latencyRow) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nHow long a command waits for its reply, %d sessions, %.0f messages of 4 KiB a second (half of what the gate reaches):\n\n",
		latencySessions, r.MessagesPerSecond)
	fmt.Fprintln(w, "| through | p50 | p99 | added to p99 |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, name := range latencyTargets {
		added := ""
		if name != direct {
			s := r.added(name)
			added = fmt.Sprintf("%.0f µs (%.0f–%.0f)", s.median, s.least, s.most)
		}
		p50, p99 := spreadOf(r.P50[name]), spreadOf(r.P99[name])
		fmt.Fprintf(w, "| %s | %.0f µs | %.0f µs (%.0f–%.0f) | %s |\n", name, p50.median, p99.median, p99.least, p99.most, added)
	}
}

// added is what a target adds to the p99 of a direct connection, in
// microseconds, taken within each round.
func (r *latencyRow) added(name string) spread {
	var more []float64
	for i, p99 := range r.P99[name] {
		more = append(more, p99-r.P99[direct][i])
	}
	return spreadOf(more)
}

func (s spread) String() string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.least, s.most)
}
