package decisions

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// TestTotalsSteps asks for spans of several lengths: the longer one is, the longer are its steps, and the sum is
// that of the decisions in it.
func TestTotalsSteps(t *testing.T) {
	now := time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)
	_, r, dir := open(t, at(now)) // else it removes what is old today
	file := &totalsFile{folder: newFolder(dir)}
	defer file.close()
	var tally tally
	for ago := range 60 * 24 { // hours; two decisions in each, a minute apart
		for i := range 2 {
			tally.add(now.Add(-time.Duration(ago)*time.Hour-time.Duration(i)*time.Minute), "reject", "blocked", []string{"spam", ""}[ago%2], 1)
		}
	}
	if err := file.write(tally.take()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		span, step time.Duration
		until      time.Time
		rows       int
		count      int64
	}{
		{time.Hour, time.Minute, now.Add(time.Minute), 2, 2},
		{minutesIn, time.Minute, now.Add(time.Minute), 6, 6},
		{time.Hour, time.Hour, now.Add(-72 * time.Hour), 2, 4}, // the first hour counts whole
		{minutesIn + time.Minute, time.Hour, now.Add(time.Minute), 4, 8},
		{24 * time.Hour, time.Hour, now.Add(time.Minute), 24, 48},
		{hoursIn, time.Hour, now.Add(time.Minute), 32 * 24, 2 * 32 * 24},
		{40 * 24 * time.Hour, 24 * time.Hour, now.Add(time.Minute), 2 * 40, 2 * 40 * 24},
		{40*24*time.Hour + time.Minute, 24 * time.Hour, now.Add(time.Minute), 2 * 41, 2 * 41 * 24},
	} {
		all, err := r.Totals(t.Context(), test.until.Add(-test.span), test.until)
		if err != nil {
			t.Fatal(err)
		}
		var count int64
		for _, total := range all {
			count += total.Count
			if !total.Start.Equal(total.Start.Truncate(test.step)) {
				t.Errorf("%v: a step begins at %v", test.span, total.Start)
			}
		}
		if len(all) != test.rows || count != test.count || !slices.IsSortedFunc(all, func(a, b Total) int { return a.Start.Compare(b.Start) }) {
			t.Errorf("%v: %d rows, want %d; %d decisions, want %d", test.span, len(all), test.rows, count, test.count)
		}
	}
}

// TestTotalsPutBack adds what could not be written to what was counted meanwhile.
func TestTotalsPutBack(t *testing.T) {
	var tally tally
	instant := time.Unix(0, 0)
	tally.add(instant, "reject", "blocked", "spam", 2)
	failed := tally.take()
	tally.add(instant, "reject", "blocked", "spam", 3)
	tally.putBack(failed)
	for a, n := range tally.take() {
		if n != 5 {
			t.Errorf("%+v: %d", a, n)
		}
	}
}

// TestTotalsReasons: text of strangers, such as the replies of lists in DNS, makes a bounded number of totals.
func TestTotalsReasons(t *testing.T) {
	var tally tally
	for i := range 3 * totalReasons {
		tally.add(time.Unix(0, 0), "reject", "blocked", fmt.Sprint(i), 1)
	}
	var rows, others int64
	for a, n := range tally.take() {
		rows++
		if a.reason == otherReasons {
			others += n
		}
	}
	if rows != 2*(totalReasons+1) || others != 2*2*totalReasons {
		t.Errorf("%d rows, and %d decisions for %s", rows, others, otherReasons)
	}
}

// TestOutcome: refusals that no list asked for are counted by their reply.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		d              Decision
		action, reason string
	}{
		{Decision{Event: "refused", Action: "reject", Reason: "bots"}, "reject", "bots"},
		{Decision{Event: "not delivered", Action: "accept", Reply: "451 4.3.0 later"}, "defer", "not delivered"},
		{Decision{Event: "not delivered", Reply: "554 5.6.0 no"}, "reject", "not delivered"},
		{Decision{Event: "not delivered", Reason: "full", Reply: "452 4.3.1"}, "defer", "full"},
		{Decision{Event: "not delivered", Action: "tag", Reply: "451 later"}, "tag", "not delivered"},
	} {
		if action, reason := c.d.outcome(); action != c.action || reason != c.reason {
			t.Errorf("%+v: %s, %s; want %s, %s", c.d, action, reason, c.action, c.reason)
		}
	}
}

// TestDropAddsUp: what could not be written is counted, each time.
func TestDropAddsUp(t *testing.T) {
	w := newWriter(&Recorder{})
	w.lose(2)
	w.lose(3)
	if w.stats.Dropped != 5 {
		t.Errorf("%d are counted, want 5", w.stats.Dropped)
	}
}

// TestTotalsCountMessages: a line beside the one that tells what became of a message does not count.
func TestTotalsCountMessages(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	w, r, _ := open(t, at(now))
	for _, e := range verdict.Events {
		if e.Note {
			write(t, w, &Decision{ID: "A", Time: now, Event: e.Text, Action: "accept", Count: 1})
		}
	}
	write(t, w, &Decision{ID: "A", Time: now, Event: verdict.EventAccepted, Action: "accept", Count: 1})
	totals, err := r.Totals(t.Context(), now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil || len(totals) != 1 || totals[0].Count != 1 || totals[0].Action != "accept" || totals[0].Reason != "" {
		t.Errorf("%+v, %v", totals, err)
	}
	if page, err := r.Find(t.Context(), Query{ID: "A"}); err != nil || len(page.Decisions) != 5 {
		t.Errorf("%d rows, %v; want one for each line", len(page.Decisions), err)
	}
}
