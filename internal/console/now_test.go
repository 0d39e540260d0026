package console

import (
	"context"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/decisions"
)

func TestNowPage(t *testing.T) {
	p := newParts(t, "")
	viewer := login(t, p.Console, "viewer")
	started := time.Now().Add(-time.Hour)
	p.gate.health = admin.Health{
		Healthy: true, Running: true, Time: time.Now(), Started: &started,
		Mail: &admin.MailHealth{OK: true, NextHops: []admin.NextHopHealth{{Address: "smtp://192.0.2.25:25", Up: true}, {Address: "smtp://192.0.2.26:25", Error: "connection refused"}, {Address: "smtp://192.0.2.27:25", Unknown: true}},
			Warnings: []string{"next hop smtp://192.0.2.25:25: it refused 46 of 50 recipients"}},
	}
	wantText(t, visit(t, p.Console, viewer, "/now", 200), "The gate works", "it refused 46 of 50 recipients", "up smtp://192.0.2.25:25", "down smtp://192.0.2.26:25", "not known smtp://192.0.2.27:25")
	wantText(t, visit(t, p.Console, viewer, "/now", 200), "Nothing has come in this time.", "blocked", "allowed-for", "file")
	for range 3 {
		p.record(refusal("NQWAAAAAAAAA", time.Minute))
	}
	d := refusal("NQWBAAAAAAAA", 26*time.Hour)
	d.Action, d.Reason = "defer", "greylisted"
	p.record(d)
	p.Recorder().Accepted(time.Now())
	if err := p.Recorder().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantText(t, visit(t, p.Console, viewer, "/now", 200), "Reaches back to "+d.Time.Local().Format("2006-01-02"))
	for _, tt := range []struct {
		span string
		want []string
	}{
		{"", []string{"3 refused", "1 accepted", "0 deferred", "unsolicited mail 3", "blocked 3", "!greylisted"}},
		{"?range=hour", []string{"last hour", "3 refused"}},
		{"?range=week", []string{"last week", "3 refused", "1 deferred", "greylisted 1", "blocked 4"}},
		{"?range=month", []string{"last month", "1 deferred"}},
		{"?range=<b>", []string{"last day", "!<b>"}},
	} {
		wantText(t, visit(t, p.Console, viewer, "/now"+tt.span, 200), tt.want...)
	}
}

// TestNowHealth shows what is wrong with the gate.
func TestNowHealth(t *testing.T) {
	p := newParts(t, "")
	p.gate.health = admin.Health{
		Running: true, Time: time.Now(),
		Mail:  &admin.MailHealth{Problems: []string{"next hop smtp://192.0.2.25:25 is down"}, NextHops: []admin.NextHopHealth{{Address: "smtp://192.0.2.25:25", Error: hostile}}},
		Lists: &admin.ListsHealth{Problems: []string{"list file: held"}},
		State: &admin.StateHealth{Problem: "no space left on device"},
	}
	body := visit(t, p.Console, login(t, p.Console, "viewer"), "/now", 200)
	wantText(t, body, "The gate has problems.", "is down", "list file: held", "no space left on device")
}

// TestCached checks that a page does not wait for a gate that tries its next hops, and
// that the gate is asked once at a time.
func TestCached(t *testing.T) {
	answer, asked := make(chan admin.Health), 0
	h := &cached[admin.Health]{fresh: healthFresh, ask: func(context.Context) admin.Health {
		asked++
		return <-answer
	}}
	now := time.Now()
	for range 2 {
		if got, _ := h.get(now); got != nil {
			t.Error("there is health before the gate has answered")
		}
	}
	answer <- admin.Health{Healthy: true, Time: now}
	last := func(now time.Time) *admin.Health {
		answer, _ := h.get(now)
		return answer
	}
	for last(now) == nil { // until the answer is stored
	}
	if got := last(now.Add(healthFresh - 1)); !got.Healthy || asked != 1 {
		t.Errorf("%+v, asked %d times", got, asked)
	}
	if got := last(now.Add(healthFresh)); !got.Healthy {
		t.Error("the earlier answer is not shown while the gate is asked again")
	}
	answer <- admin.Health{Time: now.Add(healthFresh)}
	for last(now.Add(healthFresh)).Healthy {
	}
}

func TestSeries(t *testing.T) {
	day := spans[1]
	now := time.Date(2026, 11, 23, 9, 17, 0, 0, time.Local)
	begin := day.begin(now)
	if want := now.Truncate(time.Hour).Add(-23 * time.Hour); !begin.Equal(want) {
		t.Fatalf("begins at %v, want %v", begin, want)
	}
	s := newSeries(day, begin, []decisions.Total{
		{Start: begin.Add(-time.Minute), Action: "reject", Count: 1000}, // before
		{Start: begin, Action: "reject", List: "blocked", Reason: "spam", Count: 3},
		{Start: begin.Add(59 * time.Minute), Action: "accept", List: "allowed", Count: 4},
		{Start: now, Action: "defer", List: "blocked", Count: 5},
		{Start: now, Action: "monitor", List: "blocked", Count: 50},
	})
	if s.Total != 12 || s.Steps[0].Sum != 7 || s.Steps[len(s.Steps)-1].Sum != 5 || s.Top != 10 {
		t.Errorf("%+v", s)
	}
	if says := s.Steps[0].Says(); says != begin.Format("15:04")+": 4 accepted, 3 refused" {
		t.Errorf("says %q", says)
	}
	if len(s.Lists) != 1 || s.Lists[0] != (share{Name: "blocked", Count: 8, Part: 100}) || len(s.Reasons) != 1 {
		t.Errorf("lists %v, reasons %v", s.Lists, s.Reasons)
	}
	if b := s.Steps[0].Bars; len(b) != 2 || b[0].H != 400 || b[0].Y != 600 || b[1].Y != 300 {
		t.Errorf("bars %v", b)
	}
	for _, s := range spans {
		if steps := newSeries(s, s.begin(now), nil).Steps; len(steps) != s.steps || steps[len(steps)-1].Start.After(now) || now.Sub(steps[len(steps)-1].Start) > s.step {
			t.Errorf("the last step of the %s begins at %v", s.Name, steps[len(steps)-1].Start)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for n, want := range map[int64]int64{0: 2, 1: 2, 2: 2, 3: 5, 6: 10, 11: 20, 99: 100, 100: 100, 101: 200, 501: 1000, 12_345_678: 20_000_000} {
		if got := roundUp(n); got != want {
			t.Errorf("roundUp(%d) is %d, want %d", n, got, want)
		}
	}
}

// TestNowList checks what the page says of a list.
func TestNowList(t *testing.T) {
	x := &exchange{console: testConsole(t)}
	modified := x.console.Now().Add(-3 * time.Hour)
	for _, tt := range []struct {
		list                      admin.List
		state, problem, held, age string
	}{
		{admin.List{Name: "a", Files: []admin.File{{Modified: modified}}}, "ok", "", "", "3 h"},
		{admin.List{Name: "a", Invalid: 2}, "ok", "2 invalid lines", "", ""},
		{admin.List{Name: "a", Invalid: 2, ListsNobody: "it lists nobody"}, "lists nobody", "it lists nobody", "", ""},
		{admin.List{Name: "a/b", Held: true, Error: "shrunk"}, "update held", "shrunk", "/lists/a%2Fb/held", ""},
		{admin.List{Name: "a", Error: "unreadable", Invalid: 1}, "error", "unreadable", "", ""},
		{admin.List{Name: "a", Pinned: &admin.Pinned{}}, "pinned", "", "", ""},
		{admin.List{Name: "a", DNS: &admin.DNSList{State: "off", Reason: "lists INVALID"}}, "not asked", "switched off: lists INVALID", "", ""},
		{admin.List{Name: "a", DNS: &admin.DNSList{State: "on"}}, "ok", "", "", ""},
	} {
		if n := x.nowList(tt.list); n.State.Text != tt.state || n.Problem != tt.problem || n.Held != tt.held || n.Age != tt.age {
			t.Errorf("%+v: %+v", tt, n)
		}
	}
}
