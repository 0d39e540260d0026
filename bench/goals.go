package main

import "fmt"

// goal is what the gate is to reach, as a multiple of another or in
// microseconds.
type goal struct {
	what     string
	asked    float64
	measured float64
	atLeast  bool
	suffix   string
}

func (g goal) met() bool {
	if g.atLeast {
		return g.measured >= g.asked
	}
	return g.measured <= g.asked
}

func (g goal) bound() string {
	if g.atLeast {
		return "at least"
	}
	return "at most"
}

func (g goal) unit(v float64) string {
	if g.suffix == microseconds {
		return fmt.Sprintf("%.0f %s", v, g.suffix)
	}
	return fmt.Sprintf("%.2f %s", v, g.suffix)
}

const microseconds = "µs"

// targets are the goals with what was measured: medians.
func (r *report) targets() []goal {
	small, kept, large := r.Rows[0], r.Rows[1], r.Rows[2]
	goals := []goal{
		{small.Workload.String(), 0.9, small.ratio(gate, haproxy).median, false, "× HAProxy"},
		{kept.Workload.String(), 1.2, kept.ratio(gate, haproxy).median, false, "× HAProxy"},
		{kept.Workload.String(), 0.25, kept.ratio(gate, postfix).median, false, "× Postfix"},
		{large.Workload.String(), 1.0, large.ratio(gate, haproxy).median, false, "× HAProxy"},
		{"latency added to a command, p99, half load", 300, r.Latency.added(gate).median, false, microseconds},
	}
	for _, row := range r.Refusals {
		goals = append(goals, goal{"listed senders refused a second, one client, " + row.Manner, 2,
			ratios(row.Rates[gate], row.Rates[postfix]).median, true, "× Postfix"})
	}
	return goals
}
