package main

import "fmt"

// goal is what the gate is to reach, as a multiple of another.
type goal struct {
	what     string
	asked    float64
	measured float64
	atLeast  bool
	of       string
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

func (g goal) unit(v float64) string { return fmt.Sprintf("%.2f × %s", v, g.of) }

// targets are the goals with what was measured: medians. HAProxy tells the sink
// nothing of its clients, so where nothing else is said the gate does not either.
func (r *report) targets() []goal {
	small, kept, large := r.Rows[0], r.Rows[1], r.Rows[2]
	flood := ratios(r.Flood.Rates[gateAuto], r.Flood.Rates[postfix])
	return []goal{
		{small.Workload.String() + ": " + gateNone, 0.9, small.ratio(gateNone, haproxy).median, false, haproxy},
		{"the same: " + gateXforward, 0.95, small.ratio(gateXforward, haproxy).median, false, haproxy},
		{"the same: " + gateAuto, 1.0, small.ratio(gateAuto, haproxy).median, false, haproxy},
		{"the same, CPU a message: " + gateNone, 1.2, small.cpuRatio(gateNone, haproxy).median, false, haproxy},
		{kept.Workload.String() + ": " + gateNone, 1.1, kept.ratio(gateNone, haproxy).median, false, haproxy},
		{large.Workload.String() + ": " + gateNone, 0.95, large.ratio(gateNone, haproxy).median, false, haproxy},
		{fmt.Sprintf("a flood of %d listed clients at once, refused a second: %s", r.Flood.Clients, gateAuto), 2.5, flood.median, true, postfix},
		{"p99 of a command, at most half load: " + gateNone, 1.3, r.Latency.ratio(gateNone, haproxy).median, false, haproxy},
	}
}
