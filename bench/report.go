package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"spamgate/internal/text"
)

// report is the result of a run.
type report struct {
	Machine    machine             `json:"machine"`
	Reuse      bool                `json:"gate_reuses_connections"`
	Rows       []row               `json:"rows"` // as the first of rowNames; without runs if not measured
	Features   featureRow          `json:"features"`
	Refusals   []refusalRow        `json:"refusals"`
	Flood      floodRow            `json:"flood"`
	Latency    latencyRow          `json:"latency"`
	Idle       map[string]idleness `json:"idle"`
	GateMemory int64               `json:"gate_peak_resident_bytes"` // of the largest gate
}

// row is the runs of one workload, by target and round.
type row struct {
	Name     string                   `json:"name"` // as --only has it
	Workload workload                 `json:"workload"`
	Postfix  bool                     `json:"to_postfix"` // behind the targets is a Postfix, not smtp-sink
	Runs     map[string][]measurement `json:"runs"`
}

// String returns the row as its heading names it.
func (r row) String() string {
	if r.Postfix {
		return r.Name + ": " + r.Workload.String() + toPostfix
	}
	return r.Name + ": " + r.Workload.String()
}

// figures returns a number of each run.
func (r row) figures(number func(measurement) float64) figures {
	f := figures{}
	for target, runs := range r.Runs {
		for _, m := range runs {
			f.add(target, number(m))
		}
	}
	return f
}

// times returns the run times.
func (r row) times() figures { return r.figures(func(m measurement) float64 { return m.Seconds }) }

// cpu returns the CPU times a message, in microseconds.
func (r row) cpu() figures {
	return r.figures(func(m measurement) float64 { return m.CPU / float64(r.Workload.Messages) * 1e6 })
}

// system returns those in the kernel.
func (r row) system() figures {
	return r.figures(func(m measurement) float64 { return m.System / float64(r.Workload.Messages) * 1e6 })
}

// slowestGate returns how many messages a second the slowest gate passed on over
// kept connections.
func (r *report) slowestGate() float64 {
	kept := r.Rows[1]
	longest := 0.0
	for _, g := range gates {
		longest = max(longest, kept.times().median(g.name))
	}
	return float64(kept.Workload.Messages) / longest
}

// writeText writes the report as Markdown, which is also readable in a terminal.
func (r *report) writeText(w io.Writer) error {
	var b bytes.Buffer
	m := r.Machine
	fmt.Fprintf(&b, "%s, %d cores, %s, load before %s; %s, Postfix %s, HAProxy %s; spamgate at %s.\n",
		m.CPU, m.Cores, m.Kernel, m.Load, m.Go, m.Postfix, m.HAProxy, m.Checkout)
	fmt.Fprintln(&b, "Medians of the rounds, least and most in brackets; ratios are taken within a round.")
	if !r.Reuse {
		fmt.Fprintln(&b, "The gates make a connection to the sink for each message.")
	}
	for _, row := range r.Rows {
		row.writeText(&b)
	}
	r.writeBefore(&b)
	r.Features.writeText(&b)
	r.writeRefusals(&b)
	r.Flood.writeText(&b)
	r.Latency.writeText(&b)
	if goals := r.targets(); len(goals) > 0 {
		fmt.Fprint(&b, "\nThe targets:\n\n| what | target | measured | |\n|---|---|---|---|\n")
		for _, g := range goals {
			fmt.Fprintln(&b, g)
		}
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
	for _, n := range slices.Sorted(maps.Keys(r.Idle)) {
		if i := r.Idle[n].share(); i >= share && n != direct {
			name, share = n, i
		}
	}
	return name, share
}

// measured returns those of names that have runs.
func measured[R any](runs map[string][]R) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(runs[name]) == 0 })
}

// rounds returns how many rounds were measured wholly or in part, in words.
func rounds[R any](runs map[string][]R) string {
	most := 0
	for _, numbers := range runs {
		most = max(most, len(numbers))
	}
	return text.Count(most, "round", "rounds")
}

func (r row) writeText(w io.Writer) {
	if len(r.Runs) == 0 {
		return
	}
	const line = "| %-17s | %-22s | %-18s | %-18s | %-13s | %-10s | %-18s |\n"
	fmt.Fprintf(w, "\n%s, %s:\n\n", r, rounds(r.Runs))
	fmt.Fprintf(w, line, "through", "time", "× direct", "× HAProxy", "CPU a message", "in kernel", "CPU × HAProxy")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	times, cpu, system := r.times(), r.cpu(), r.system()
	for _, name := range measured(r.Runs) {
		var ratioDirect, ratioHAProxy, median, kernel, ratioCPU string
		if name != direct {
			ratioDirect = times.ratio(name, direct).String()
			median = fmt.Sprintf("%.0f µs", cpu.median(name))
			kernel = fmt.Sprintf("%.0f µs", system.median(name))
		}
		if name != direct && name != haproxy {
			ratioHAProxy = times.ratio(name, haproxy).String()
			ratioCPU = cpu.ratio(name, haproxy).String()
		}
		fmt.Fprintf(w, line, name, spreadOf(times[name]).format("%.2f s (%.2f–%.2f)"), ratioDirect, ratioHAProxy, median, kernel, ratioCPU)
	}
}

// rowsOf returns the rows of mail that a target has runs of.
func (r *report) rowsOf(name string) []row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(r row) bool { return len(r.Runs[name]) == 0 })
}

// writeBefore compares the gate with an older one.
func (r *report) writeBefore(w io.Writer) {
	rows := r.rowsOf(gateBefore)
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, × the gate of --before:\n\n| workload | time | CPU |\n|---|---|---|\n", gateNone)
	for _, row := range rows {
		fmt.Fprintf(w, "| %s | %s | %s |\n", row.Name, row.times().ratio(gateNone, gateBefore), row.cpu().ratio(gateNone, gateBefore))
	}
}

// writeText writes what the history with the console, and a fleet cost.
func (r featureRow) writeText(w io.Writer) {
	if len(r.Runs) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %s; history: a row for each message in it, and the console, until the last row is committed, %s after the last message; fleet: a member, with the fleet's server:\n\n"+
		"| through | time | × %s | CPU a message | CPU × %[4]s |\n|---|---|---|---|---|\n",
		r.Workload, rounds(r.Runs), spreadOf(r.late()).format("%.2f s (%.2f–%.2f)"), gateBare)
	times, cpu := r.row().times(), r.row().cpu()
	for _, g := range featureGates {
		var ratio, ratioCPU string
		if g.name != gateBare {
			ratio, ratioCPU = times.ratio(g.name, gateBare).String(), cpu.ratio(g.name, gateBare).String()
		}
		fmt.Fprintf(w, "| %s | %s | %s | %.0f µs | %s |\n", g.name, spreadOf(times[g.name]).format("%.2f s (%.2f–%.2f)"), ratio, cpu.median(g.name), ratioCPU)
	}
}

// writeRefusals writes how fast a process is woken.
func (r *report) writeRefusals(w io.Writer) {
	if len(r.Refusals) == 0 {
		return
	}
	first := r.Refusals[0]
	fmt.Fprintf(w, "\nListed senders refused, one client that waits for each reply, %s in a run, %s:\n\n"+
		"| how | by | a second | × Postfix |\n|---|---|---|---|\n", text.Number(first.Refusals), rounds(first.Rates))
	for _, row := range r.Refusals {
		for _, name := range measured(row.Rates) {
			fmt.Fprintf(w, "| %s | %s | %s |\n", row.Manner, name, rateCells(row.Rates, name))
		}
	}
}

// rateCells returns two cells of a table: a target's rate, and its ratio to
// Postfix's.
func rateCells(rates figures, name string) string {
	ratio := ""
	if name != postfix {
		ratio = rates.ratio(name, postfix).String()
	}
	return spreadOf(rates[name]).format("%.0f (%.0f–%.0f)") + " | " + ratio
}

func (r floodRow) writeText(w io.Writer) {
	if len(r.Rates) == 0 {
		return
	}
	fmt.Fprintf(w, "\nA flood of listed senders, %d clients at once, a connection each, %s in a run, %s:\n\n"+
		"| by | refused a second | × Postfix | CPU a refusal | generator's share of the machine |\n|---|---|---|---|---|\n", r.Clients, text.Number(r.Refusals), rounds(r.Rates))
	for _, name := range measured(r.Rates) {
		fmt.Fprintf(w, "| %s | %s | %.0f µs | %.0f%% |\n", name, rateCells(r.Rates, name), r.CPU.median(name), 100*r.Generator.median(name))
	}
}

func (r latencyRow) writeText(w io.Writer) {
	if len(r.P99) == 0 {
		return
	}
	fmt.Fprintf(w, "\nHow long a command waits for its reply, %s, %d sessions, %.0f messages of 4 KiB a second (half of what the slowest gate reaches is %.0f):\n\n"+
		"| through | p50 | p99 | p99 × HAProxy | generator's share of the machine |\n|---|---|---|---|---|\n", rounds(r.P99), latencySessions, r.MessagesPerSecond, r.HalfLoad)
	most := 0.0 // of the generator's shares
	for _, name := range measured(r.P99) {
		ratio := ""
		if name != direct && name != haproxy {
			ratio = r.P99.ratio(name, haproxy).String()
		}
		share := r.Generator.median(name)
		most = max(most, share)
		fmt.Fprintf(w, "| %s | %.0f µs | %s | %s | %.0f%% |\n", name, r.P50.median(name), spreadOf(r.P99[name]).format("%.0f µs (%.0f–%.0f)"), ratio, 100*share)
	}
	if most > generatorShare {
		fmt.Fprintf(w, "\nThe generator took up to %.0f%% of the machine, more than a third: these waits are partly its own.\n", 100*most)
	}
}
