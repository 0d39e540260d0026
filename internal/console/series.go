package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
)

// span is a span of time that the page Now shows, in steps.
type span struct {
	Name  string // in the URL
	Text  string
	Since string // of the search
	step  time.Duration
	steps int
}

// spans are the spans of the page Now. The totals have minutes for the hour, and hours for the others.
var spans = []span{
	{"hour", "hour", "1h", time.Minute, 60},
	{"day", "day", "1d", time.Hour, 24},
	{"week", "week", "7d", 4 * time.Hour, 42},
	{"month", "month", "30d", 24 * time.Hour, 30},
}

// kinds are the outcomes that the chart tells apart, from the bottom.
var kinds = verdict.Actions()[:verdict.Monitor]

// series is what was decided over time.
type series struct {
	Kinds  []kind
	Steps  []step
	Labels []string // of the first, the middle and the last step
	Top    int64    // of the scale
	Total  int64

	Lists, Reasons []share
}

// kind is an outcome with its sum.
type kind struct {
	Action string
	Text   string
	Sum    int64
	Path   string // of the search
}

// step is a step of time.
type step struct {
	Start  time.Time
	Label  string
	Counts []int64 // by kind
	Sum    int64
	Bars   []bar
}

// bar is a part of a column: in per mille of the chart's width and height.
type bar struct {
	Action     string
	X, Y, W, H float64
}

// share is a list or a reason with the number of its decisions.
type share struct {
	Name  string
	Count int64
	Part  float64 // of the greatest, in per cent
	Path  string  // of the search; "" for none
}

// mostShares bounds the lists and reasons.
const mostShares = 10

// begin returns the start of the first step of a span that ends now. Days begin at midnight, and
// hours as those of the totals do.
func (s span) begin(now time.Time) time.Time {
	now = now.Local()
	if s.step == time.Hour {
		return now.Truncate(s.step).Add(-s.step * time.Duration(s.steps-1))
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	if s.step == 24*time.Hour {
		return midnight.AddDate(0, 0, 1-s.steps)
	}
	current := midnight.Add(now.Sub(midnight).Truncate(s.step))
	return current.Add(-s.step * time.Duration(s.steps-1))
}

// start returns the start of a step. A day may have 23 or 25 hours.
func (s span) start(begin time.Time, i int) time.Time {
	if s.step == 24*time.Hour {
		return begin.AddDate(0, 0, i)
	}
	return begin.Add(s.step * time.Duration(i))
}

// newSeries sums up totals by step, outcome, list and reason.
func newSeries(s span, begin time.Time, totals []decisions.Total) *series {
	all := &series{Steps: make([]step, s.steps)}
	for _, k := range kinds {
		all.Kinds = append(all.Kinds, kind{Action: k, Text: verdict.ActionOf(k).Done()})
	}
	starts := make([]time.Time, s.steps)
	for i := range starts {
		starts[i] = s.start(begin, i)
		all.Steps[i] = step{Start: starts[i], Label: s.label(starts[i]), Counts: make([]int64, len(kinds))}
	}
	lists, reasons := map[string]int64{}, map[string]int64{}
	for _, t := range totals {
		k := slices.Index(kinds, t.Action)
		pos, exact := slices.BinarySearchFunc(starts, t.Start, time.Time.Compare)
		if !exact {
			pos--
		}
		if k < 0 || pos < 0 {
			continue // what only monitors, and what is before the span
		}
		all.Steps[pos].Counts[k] += t.Count
		all.Steps[pos].Sum += t.Count
		all.Kinds[k].Sum += t.Count
		all.Total += t.Count
		if t.Action != "accept" {
			if t.List != "" {
				lists[t.List] += t.Count
			}
			if t.Reason != "" {
				reasons[t.Reason] += t.Count
			}
		}
	}
	all.Lists, all.Reasons = shares(lists), shares(reasons)
	all.draw()
	return all
}

// label names a step.
func (s span) label(start time.Time) string {
	switch {
	case s.step >= 24*time.Hour:
		return start.Format("Jan 2")
	case s.steps*int(s.step/time.Minute) > 2*24*60:
		return start.Format("Mon 15:04")
	}
	return start.Format("15:04")
}

// shares returns the greatest of counts, the greatest first.
func shares(counts map[string]int64) (all []share) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, share{Name: name, Count: counts[name]})
	}
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(b.Count, a.Count) })
	all = all[:min(mostShares, len(all))]
	for i := range all {
		all[i].Part = 100 * float64(all[i].Count) / float64(all[0].Count)
	}
	return all
}

// draw places the bars of the chart.
func (s *series) draw() {
	for _, st := range s.Steps {
		s.Top = max(s.Top, st.Sum)
	}
	s.Top = roundUp(s.Top)
	width := s.Width()
	for i := range s.Steps {
		st := &s.Steps[i]
		y := 1000.0
		for k, n := range st.Counts {
			if n == 0 {
				continue
			}
			h := 1000 * float64(n) / float64(s.Top)
			y -= h
			st.Bars = append(st.Bars, bar{Action: kinds[k], X: s.X(i) + width*0.1, Y: y, W: width * 0.8, H: h})
		}
	}
	last := len(s.Steps) - 1
	s.Labels = []string{s.Steps[0].Label, s.Steps[last/2].Label, s.Steps[last].Label}
}

// roundUp returns the next number that begins with 1, 2 or 5, and has zeros else.
func roundUp(n int64) int64 {
	if n <= 2 {
		return 2
	}
	power := int64(math.Pow10(int(math.Log10(float64(n)))))
	for _, m := range []int64{1, 2, 5} {
		if m*power >= n {
			return m * power
		}
	}
	return 10 * power
}

// Says returns a step in words.
func (st *step) Says() string {
	text := st.Label + ":"
	if st.Sum == 0 {
		return text + " nothing"
	}
	for k, n := range st.Counts {
		if n > 0 {
			text += fmt.Sprintf(" %s %s,", number(n), verdict.ActionOf(kinds[k]).Done())
		}
	}
	return text[:len(text)-1]
}

// Width returns the width of a step in the chart, and X where it begins.
func (s *series) Width() float64  { return 1000 / float64(len(s.Steps)) }
func (s *series) X(i int) float64 { return float64(i) * s.Width() }
