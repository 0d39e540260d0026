package decisions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"spamgate/blocklist/verdict"
)

// TestFlood refuses one client again and again: the first ten refusals of a minute have rows, the last of which
// counts the others.
func TestFlood(t *testing.T) {
	for _, each := range []int{1, 7, 1000} { // rows in a batch
		w, r, _ := open(t, nil)
		now := time.Now().UTC().Truncate(time.Hour)
		n := 0
		for i := range 1000 {
			d := refusal(0, now.Add(time.Duration(i)*100*time.Millisecond)) // 100 seconds
			d.ID, d.Client = fmt.Sprint("F", i), fmt.Sprint("192.0.2.1:", 1000+i)
			if w.Record(d); i%each == each-1 {
				write(t, w)
			}
			if i%10 == 0 {
				other := refusal(i, d.Time) // unlike the others
				other.Entry = fmt.Sprint(i)
				w.Record(other)
				n++
			}
		}
		write(t, w)
		p, err := r.Find(t.Context(), Query{Sender: "a0@b0.spam.example"})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		count := 0
		for _, d := range p.Decisions {
			if d.Entry == "0" {
				continue
			}
			ids = append(ids, fmt.Sprint(d.ID, "x", d.Count))
			count += d.Count
			if d.Count > 1 && !d.Last.Equal(d.Time.Add(time.Duration(d.Count-1)*100*time.Millisecond)) {
				t.Errorf("%d from %v to %v", d.Count, d.Time, d.Last)
			}
		}
		want := "F609x391 F608x1 F607x1 F606x1 F605x1 F604x1 F603x1 F602x1 F601x1 F600x1 " +
			"F9x591 F8x1 F7x1 F6x1 F5x1 F4x1 F3x1 F2x1 F1x1 F0x1"
		if got := strings.Join(ids, " "); got != want || count != 1000 {
			t.Errorf("batches of %d: %s", each, got)
		}
		if s := w.Stats(); s.Merged != 980 || s.Rows != int64(20+n) {
			t.Errorf("%+v", s)
		}
		top, err := r.Top(t.Context(), TopSenders, time.Time{}, 1, Query{})
		if err != nil || len(top) != 1 || top[0].Name != "a0@b0.spam.example" || top[0].Count != 1001 {
			t.Errorf("top: %+v, %v", top, err)
		}
	}
}

// TestFloodMemory has more different refusals than are remembered.
func TestFloodMemory(t *testing.T) {
	f := newFloods()
	now := time.Now()
	for i := range 3 * floodKeys {
		d := refusal(i, now)
		d.Client = fmt.Sprintf("[2001:db8:%x::1]:4000", i)
		if _, row := f.add(d, 1<<30); row != d || len(f.seen) > floodKeys || len(f.shares) > floodKeys {
			t.Fatal(i, row, len(f.seen), len(f.shares))
		}
	}
	accepted := &Decision{Event: verdict.EventAccepted}
	if flood, row := f.add(accepted, 0); flood != nil || row != accepted {
		t.Error("an accepted message is merged")
	}
}

// TestHostileRows records what no honest client sends.
func TestHostileRows(t *testing.T) {
	w, r, _ := open(t, nil)
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("person%d@example.net", i)
	}
	headers := make([]string, 5000)
	for i := range headers {
		headers[i] = fmt.Sprint(i, "@", strings.Repeat("x.", 100), "example")
	}
	now := time.Now()
	long := strings.Repeat("\xffü", 100_000)
	write(t, w,
		&Decision{ID: "MANY", Time: now, Event: "refused", Recipients: many, HeaderSenders: headers, Sender: "a@example.org"},
		&Decision{ID: "LONG", Time: now, Event: long, Level: long, Door: long, Listener: long, Client: long, Helo: long, Sender: long,
			Recipients: []string{long, long}, HeaderSenders: []string{long}, MessageID: long, Action: long, List: long, Entry: long,
			Reason: long, Reply: long, Attrs: []Attr{{long, long}, {"a", long}, {long, "b"}, {long, long}, {long, long}, {long, long}, {long, long}}},
		&Decision{ID: "NUL\x00\xff", Time: now, Sender: "a\x00b@example.org", Reply: "\x00\x1b[31m\u2028<script>", Attrs: []Attr{{"\x00", "\xff"}}},
		&Decision{ID: "TIME", Time: time.Time{}, Sender: "a@example.org", Count: -5},
		&Decision{ID: "FAR", Time: time.Unix(1<<60, 0), Sender: "a@example.org"},
		&Decision{},
	)
	p, err := r.Find(t.Context(), Query{})
	if err != nil || len(p.Decisions) != 6 {
		t.Fatal(len(p.Decisions), err)
	}
	for _, d := range p.Decisions {
		text, err := json.Marshal(d)
		if err != nil || !json.Valid(text) || !utf8.Valid(text) || len(text) > 100<<10 {
			t.Errorf("%.20q: %d bytes of JSON: %v", d.ID, len(text), err)
		}
		if strings.Contains(string(text), `\ufffd`) && !strings.ContainsRune(d.ID+d.Helo, utf8.RuneError) {
			t.Errorf("%.200s", text)
		}
		if d.Count != 1 || d.Last.Before(d.Time) || d.Time.Before(now.Add(-time.Minute)) || d.Time.After(now.Add(time.Minute)) {
			t.Errorf("%.20q: %d, %v", d.ID, d.Count, d.Time)
		}
		bytes := 0
		for _, s := range append(append([]string{d.Helo, d.Sender, d.Reply, d.Entry, d.Reason, d.MessageID}, d.Recipients...), d.HeaderSenders...) {
			bytes += len(s)
		}
		if bytes > 64<<10 {
			t.Errorf("%.20q: %d bytes", d.ID, bytes)
		}
	}
	for _, test := range []struct {
		q    Query
		want int
	}{
		{Query{Recipient: "person0@example.net"}, 1},
		{Query{ID: "NUL\x00\xff"}, 1},
		{Query{Sender: "a\x00b@example.org"}, 1},
		{Query{Domain: strings.Repeat("x.", 30) + "example"}, 1},
		{Query{Sender: "<>"}, 1},
	} {
		p, err := r.Find(t.Context(), test.q)
		if err != nil || len(p.Decisions) != test.want {
			t.Errorf("%+v: %d rows, %v", test.q, len(p.Decisions), err)
			continue
		}
		if d := p.Decisions[0]; d.ID == "MANY" {
			if len(d.Recipients)+d.MoreRecipients != 10_000 || len(d.HeaderSenders)+d.MoreHeaderSenders != 5000 || d.Recipients[0] != many[0] {
				t.Errorf("%d and %d recipients, %d and %d senders", len(d.Recipients), d.MoreRecipients, len(d.HeaderSenders), d.MoreHeaderSenders)
			}
		}
	}
	if many[9999] != "person9999@example.net" || headers[0] == "" {
		t.Error("the caller's addresses are changed")
	}
}

// TestQueue records more than the queue holds while nothing can be written.
func TestQueue(t *testing.T) {
	var r Recorder
	r.wake = make(chan struct{}, 1)
	big := &Decision{Helo: strings.Repeat("x", 1<<20)}
	for range 2 * queueBytes >> 20 {
		r.Record(big)
	}
	if s := r.Stats(); s.Queued >= queueBytes>>20 || s.Queued < queueBytes>>21 || s.Dropped+int64(s.Queued) != 2*queueBytes>>20 {
		t.Errorf("large rows: %+v", s)
	}
	r = Recorder{wake: make(chan struct{}, 1)}
	for range queueRows + 5 {
		r.Record(&Decision{})
	}
	if s := r.Stats(); s.Queued != queueRows || s.Dropped != 5 {
		t.Errorf("small rows: %+v", s)
	}
	if allocs := testing.AllocsPerRun(1000, func() { r.Record(big) }); allocs > 0 {
		t.Errorf("a dropped row allocates %v times", allocs)
	}
}

// TestAccepted counts plain accepts without rows, unless all are wanted.
func TestAccepted(t *testing.T) {
	w, r, _ := open(t, nil)
	now := time.Now()
	if allocs := testing.AllocsPerRun(100, func() { w.Accepted(now) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	w.Configure(time.Hour, 1<<30, true)
	if !w.Accepted(now) {
		t.Error("with All a plain accept has a row")
	}
	write(t, w, &Decision{ID: "A", Time: now, Event: "accepted", Action: "accept", Sender: "a@example.org"})
	p, err := r.Find(t.Context(), Query{})
	if err != nil || len(p.Decisions) != 1 {
		t.Error(p, err)
	}
	totals, err := r.Totals(t.Context(), now.Add(-time.Hour), now.Add(time.Hour))
	sum := int64(0)
	for _, total := range totals {
		if total.Action == "accept" {
			sum += total.Count
		}
	}
	if err != nil || sum != 102 { // AllocsPerRun runs once more
		t.Errorf("%v, %v", totals, err)
	}
}

// TestSubscribe follows new rows. A slow reader loses rows, and nobody waits.
func TestSubscribe(t *testing.T) {
	w, _, _ := open(t, nil)
	rows, stop := w.Subscribe()
	slow, stopSlow := w.Subscribe()
	now := time.Now()
	for i := range 2 * followed {
		write(t, w, refusal(i, now))
		if d := <-rows; d.ID != fmt.Sprintf("ID%06d", i) || d.Count != 1 {
			t.Fatalf("row %d is %+v", i, d)
		}
	}
	stop()
	if _, more := <-rows; more {
		t.Error("a row after the end")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range slow {
		n++
	}
	if n != followed {
		t.Errorf("the slow reader has %d rows", n)
	}
	stop()
	stopSlow()
	w.Record(refusal(1, now))
	if s := w.Stats(); s.Dropped != 1 {
		t.Errorf("after the end: %+v", s)
	}
	if err := w.Sync(t.Context()); err == nil {
		t.Error("Sync after the end")
	}
}
