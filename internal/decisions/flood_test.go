package decisions

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// TestFloodOfOneRecipient: refusals at two recipients are two rows, so that each one finds his.
func TestFloodOfOneRecipient(t *testing.T) {
	f := newFloods()
	choose := func(recipients ...string) *Decision {
		return &Decision{Sender: "a@listed.example", Recipients: recipients}
	}
	first, again, other := f.key(choose("b@example.net")), f.key(choose("b@example.net")), f.key(choose("c@example.net"))
	if first != again || first == other {
		t.Error("the keys do not tell recipients apart")
	}
}

// TestShare has a client that is refused by a list with ever other senders: its rows end, one for all
// others counts them, and the rows of other clients and lists, and of what passes, stay.
func TestShare(t *testing.T) {
	const maxBytes = 64 << 20
	keep := 7 * 24 * time.Hour
	w, r, _ := open(t, func(o *Options) { o.MaxBytes, o.Keep, o.share, o.All = maxBytes, keep, 0, true })
	now := time.Now().UTC().Truncate(time.Hour)
	const n = 20_000
	var others []string
	for i := range n {
		instant := now.Add(time.Duration(i) * time.Millisecond)
		d := refusal(i, instant)
		d.Helo = strings.Repeat("x", 2000)
		w.Record(d)
		if i%1000 == 0 {
			other := refusal(n+i, instant)
			other.Client = "198.51.100.1:25"
			list := refusal(2*n+i, instant)
			list.List = "other"
			passed := refusal(3*n+i, instant)
			passed.Event, passed.Action, passed.List = verdict.EventAccepted, "accept", ""
			others = append(others, other.ID, list.ID, passed.ID)
			write(t, w, other, list, passed)
		}
	}
	write(t, w)
	for _, id := range others {
		if p, err := r.Find(t.Context(), Query{ID: id}); err != nil || len(p.Decisions) != 1 {
			t.Errorf("%s: %d rows, %v", id, len(p.Decisions), err)
		}
	}
	p, err := r.Find(t.Context(), Query{Client: "192.0.2.1", List: "blocked", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	rows, total := 0, 0
	for _, d := range p.Decisions {
		rows += d.Count
		if d.Sender == Others {
			total += d.Count
			if d.Recipients != nil || d.Entry != "" {
				t.Errorf("%+v", d)
			}
		}
	}
	if most := shareLeast/2000 + 1; rows != n || len(p.Decisions) > most || n-total > most {
		t.Errorf("%d rows stand for %d refusals, %d of them others", len(p.Decisions), rows, total)
	}
	t.Logf("%d rows of the client for %d refusals", len(p.Decisions), rows)
	if s := w.Stats(); s.Bytes > 16<<20 || s.Short {
		t.Errorf("%+v", s)
	}
}

// TestShareNextHour: a client has rows again in the next hour, and a flood of one sender is one of
// its own.
func TestShareNextHour(t *testing.T) {
	f := newFloods()
	now := time.Now()
	d := func(i int, after time.Duration) *Decision { return refusal(i, now.Add(after)) }
	room := int64(d(0, 0).size()) * 5 / 2
	for i, c := range []struct {
		sender int
		after  time.Duration
		want   string // "own", "others" or "counted"
	}{
		{0, 0, "own"}, {1, 0, "own"}, {2, 0, "others"}, {3, 0, "counted"}, {0, time.Second, "counted"},
		{4, time.Hour, "own"}, {5, time.Hour, "own"}, {6, time.Hour, "others"},
	} {
		decision := d(c.sender, c.after)
		_, row := f.add(decision, room)
		got := "others"
		switch {
		case row == decision:
			got = "own"
		case row == nil:
			got = "counted"
		}
		if got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	f.renew()
	if _, row := f.add(d(7, time.Hour), room); row == nil || row.Sender != Others {
		t.Errorf("in a new file: %+v", row)
	}
}

// TestShort says that a full history reaches back less than it is to, until that is over.
func TestShort(t *testing.T) {
	var clock testClock
	var log bytes.Buffer
	w, _, _ := open(t, func(o *Options) {
		o.MaxBytes, o.Keep, o.Now, o.Logger = 16<<20, 3*24*time.Hour, clock.now, slog.New(slog.NewTextHandler(&log, nil))
	})
	fill := func(n int) {
		for i := range n {
			d := refusal(i, clock.now())
			d.Reply = strings.Repeat("x", 8000)
			w.Record(d)
			if i%200 == 0 {
				write(t, w)
			}
		}
		write(t, w)
	}
	fill(200)
	if s := w.Stats(); s.Short {
		t.Errorf("%+v", s)
	}
	fill(6000)
	if s := w.Stats(); !s.Short || s.Bytes > 16<<20 {
		t.Errorf("%+v", s)
	}
	for range 4 {
		clock.add(24 * time.Hour)
		fill(1)
	}
	if s := w.Stats(); s.Short {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(log.String(), "the history of decisions is full"); n != 1 {
		t.Errorf("%d lines: %s", n, &log)
	}
}
