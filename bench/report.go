package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// report is the result of a run.
type report struct {
	Machine    machine             `json:"machine"`
	Reuse      bool                `json:"gate_reuses_connections"`
	Rows       []row               `json:"rows"`
	Refusals   []refusalRow        `json:"refusals"`
	Flood      *floodRow           `json:"flood"`
	Latency    *latencyRow         `json:"latency"`
	Idle       map[string]idleness `json:"idle"`
	GateMemory int64               `json:"gate_peak_resident_bytes"` // of the largest gate
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

// cpu is the processor time a message of a target, in microseconds.
func (r row) cpu(name string) []float64 {
	var cpu []float64
	for _, m := range r.Runs[name] {
		cpu = append(cpu, m.CPU/float64(r.Workload.Messages)*1e6)
	}
	return cpu
}

// cpuRatio compares the processor times of two targets within each round.
func (r row) cpuRatio(name, to string) spread {
	return ratios(r.cpu(name), r.cpu(to))
}

// slowestGate is how many messages a second the slowest gate has passed on over
// kept connections.
func (r *report) slowestGate() float64 {
	kept := r.Rows[1]
	longest := 0.0
	for _, g := range gates {
		longest = max(longest, spreadOf(kept.times(g.name)).median)
	}
	return float64(kept.Workload.Messages) / longest
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
		fmt.Fprintln(&b, "The gates make a connection to the sink for each message.")
	}
	for _, row := range r.Rows {
		row.writeText(&b)
	}
	r.writeIdentities(&b)
	for _, row := range r.Refusals {
		row.writeText(&b)
	}
	r.Flood.writeText(&b)
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
	name, share := r.busiest()
	fmt.Fprintf(&b, "\nWhile others were measured, a contender used at most %.2f%% of a core (%s).\n", 100*share, name)
	if r.GateMemory > 0 {
		fmt.Fprintf(&b, "A gate had at most %d MiB resident.\n", r.GateMemory>>20)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// busiest returns the contender that used most of a core while others were
// measured.
func (r *report) busiest() (name string, share float64) {
	for _, n := range names {
		if i := r.Idle[n].share(); i >= share && n != direct {
			name, share = n, i
		}
	}
	return name, share
}

func (r row) writeText(w io.Writer) {
	const line = "| %-17s | %-22s | %-18s | %-18s | %-13s | %-18s |\n"
	fmt.Fprintf(w, "\n%s:\n\n", r.Workload)
	fmt.Fprintf(w, line, "through", "time", "× direct", "× HAProxy", "CPU a message", "CPU × HAProxy")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, name := range names {
		ratioDirect, ratioHAProxy, cpu, ratioCPU := "", "", "", ""
		if name != direct {
			ratioDirect = r.ratio(name, direct).String()
			cpu = fmt.Sprintf("%.0f µs", spreadOf(r.cpu(name)).median)
		}
		if name != direct && name != haproxy {
			ratioHAProxy = r.ratio(name, haproxy).String()
			ratioCPU = r.cpuRatio(name, haproxy).String()
		}
		t := spreadOf(r.times(name))
		time := fmt.Sprintf("%.2f s (%.2f–%.2f)", t.median, t.least, t.most)
		fmt.Fprintf(w, line, name, time, ratioDirect, ratioHAProxy, cpu, ratioCPU)
	}
}

// writeIdentities writes what it costs to tell the sink who its client is.
func (r *report) writeIdentities(w io.Writer) {
	fmt.Fprintf(w, "\nWhat it costs to tell the sink who the client is, × %s:\n\n", gateNone)
	fmt.Fprintln(w, "| workload | xforward, time | xforward, CPU | auto, time | auto, CPU |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", row.Workload, row.ratio(gateXforward, gateNone), row.cpuRatio(gateXforward, gateNone),
			row.ratio(gateAuto, gateNone), row.cpuRatio(gateAuto, gateNone))
	}
}

func (r refusalRow) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nListed senders refused, one client that waits for each reply, %s in a run, %s (how fast a process is woken):\n\n", thousands(r.Refusals), r.Manner)
	fmt.Fprintln(w, "| by | a second | × Postfix |")
	fmt.Fprintln(w, "|---|---|---|")
	for _, name := range refusers {
		fmt.Fprintf(w, "| %s | %s |\n", name, rateCells(r.Rates, name))
	}
}

// rateCells returns two cells of a table: a target's rate, and its ratio to
// Postfix's.
func rateCells(rates map[string][]float64, name string) string {
	s := spreadOf(rates[name])
	ratio := ""
	if name != postfix {
		ratio = ratios(rates[name], rates[postfix]).String()
	}
	return fmt.Sprintf("%.0f (%.0f–%.0f) | %s", s.median, s.least, s.most, ratio)
}

func (r *floodRow) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nA flood of listed senders, %d clients at once, a connection each, %s in a run:\n\n", r.Clients, thousands(r.Refusals))
	fmt.Fprintln(w, "| by | refused a second | × Postfix | CPU a refusal | generator's share of the machine |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, name := range refusers {
		fmt.Fprintf(w, "| %s | %s | %.0f µs | %.0f%% |\n", name, rateCells(r.Rates, name),
			spreadOf(r.CPU[name]).median, 100*spreadOf(r.Generator[name]).median)
	}
}

func (r *latencyRow) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nHow long a command waits for its reply, %d sessions, %.0f messages of 4 KiB a second (half of what the slowest gate reaches is %.0f):\n\n",
		latencySessions, r.MessagesPerSecond, r.HalfLoad)
	fmt.Fprintln(w, "| through | p50 | p99 | p99 × HAProxy | generator's share of the machine |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, name := range latencyTargets {
		ratio := ""
		if name != direct && name != haproxy {
			ratio = r.ratio(name, haproxy).String()
		}
		p50, p99 := spreadOf(r.P50[name]), spreadOf(r.P99[name])
		fmt.Fprintf(w, "| %s | %.0f µs | %.0f µs (%.0f–%.0f) | %s | %.0f%% |\n", name, p50.median, p99.median, p99.least, p99.most, ratio,
			100*spreadOf(r.Generator[name]).median)
	}
	if most := r.generatorShare(); most > generatorShare {
		fmt.Fprintf(w, "\nThe generator took up to %.0f%% of the machine, more than a third: these waits are partly its own.\n", 100*most)
	}
}

// ratio compares the p99 of two targets within each round.
func (r *latencyRow) ratio(name, to string) spread { return ratios(r.P99[name], r.P99[to]) }

// generatorShare is the largest part of the machine that the generator has taken, a
// target's median.
func (r *latencyRow) generatorShare() float64 {
	most := 0.0
	for _, shares := range r.Generator {
		most = max(most, spreadOf(shares).median)
	}
	return most
}

func (s spread) String() string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.least, s.most)
}
