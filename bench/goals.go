package main

import (
	"fmt"
	"math"
	"slices"
)

// goal is a goal of the gate, as a multiple of another target's figure.
type goal struct {
	what     string
	asked    float64
	measured float64
	atLeast  bool
	name     string
}

func (g goal) met() bool {
	if g.atLeast {
		return g.measured >= g.asked
	}
	return g.measured <= g.asked
}

// String returns the goal as a row of a Markdown table.
func (g goal) String() string {
	bound, verdict := "at most", "missed"
	if g.atLeast {
		bound = "at least"
	}
	if g.met() {
		verdict = "met"
	}
	return fmt.Sprintf("| %s | %s %.2f × %s | %.2[5]f × %[4]s | %[6]s |", g.what, bound, g.asked, g.name, g.measured, verdict)
}

// targets returns the goals that were measured, with the medians. HAProxy does not tell the
// sink who its clients are, so most goals are for the gate that does not either.
func (r *report) targets() []goal {
	small, kept, large := r.Rows[0], r.Rows[1], r.Rows[2]
	flood := r.Flood.Rates.ratio(gateAuto, postfix)
	goals := []goal{
		{small.Name + ": " + gateNone, 0.9, small.times().ratio(gateNone, haproxy).median, false, haproxy},
		{"the same: " + gateXforward, 0.95, small.times().ratio(gateXforward, haproxy).median, false, haproxy},
		{"the same: " + gateAuto, 1.0, small.times().ratio(gateAuto, haproxy).median, false, haproxy},
		{"the same, CPU a message: " + gateNone, 1.2, small.cpu().ratio(gateNone, haproxy).median, false, haproxy},
		{kept.Name + ": " + gateNone, 1.1, kept.times().ratio(gateNone, haproxy).median, false, haproxy},
		{large.Name + ": " + gateNone, 0.95, large.times().ratio(gateNone, haproxy).median, false, haproxy},
		{"each, to the last row in the history: " + gateHistory, 1.15, r.Features.row().times().ratio(gateHistory, gateBare).median, false, gateBare},
		{"each, in a fleet: " + gateFleet, 1.05, r.Features.row().times().ratio(gateFleet, gateBare).median, false, gateBare},
		{fmt.Sprintf("a flood of %d listed clients at once, refused a second: %s", r.Flood.Clients, gateAuto), 2.5, flood.median, true, postfix},
		{"p99 of a command, at most half load: " + gateNone, 1.3, r.Latency.P99.ratio(gateNone, haproxy).median, false, haproxy},
	}
	return slices.DeleteFunc(goals, func(g goal) bool { return math.IsNaN(g.measured) })
}
