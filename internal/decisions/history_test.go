package decisions

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// open opens a history in a new directory.
func open(t testing.TB, change func(*Options)) (*Recorder, *Reader, string) {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "decisions"), Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 30, share: 1 << 40}
	if change != nil {
		change(&o)
	}
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	r := NewReader(o.Dir)
	t.Cleanup(func() { r.Close() })
	return w, r, o.Dir
}

// at lets the history take a time for now, so that what happened then is not too old to keep.
func at(now time.Time) func(*Options) {
	return func(o *Options) { o.Now = func() time.Time { return now } }
}

// write records decisions and waits until they are written.
func write(t testing.TB, w *Recorder, all ...*Decision) {
	t.Helper()
	for _, d := range all {
		w.Record(d)
	}
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err, w.Stats())
	}
}

// refusal returns a refusal that is unlike others with another i.
func refusal(i int, instant time.Time) *Decision {
	return &Decision{
		ID: fmt.Sprintf("ID%06d", i), Time: instant, Event: "refused", Level: "INFO", Action: "reject",
		Client: "192.0.2.1:4000", Helo: "client.example.com", Sender: fmt.Sprintf("a%d@b%d.spam.example", i, i%100),
		Recipients: []string{fmt.Sprintf("u%d@example.net", i%1000)}, List: "blocked", Entry: "spam.example",
		Reason: "unsolicited mail", Reply: "550 5.7.1 refused",
	}
}

func TestFindsMany(t *testing.T) {
	w, r, _ := open(t, nil)
	const n = 40_000 // two blocks, and rows that are in none yet
	now := time.Now()
	for i := range n {
		w.Record(refusal(i, now.Add(time.Duration(i)*time.Microsecond)))
	}
	write(t, w)
	for _, test := range []struct {
		q    Query
		want int
	}{
		{Query{}, n},
		{Query{ID: "id000077"}, 1},
		{Query{ID: "ID039999"}, 1},
		{Query{ID: "ID040000"}, 0},
		{Query{Domain: "b5.spam.example"}, n / 100},
		{Query{Domain: "spam.example", Recipient: "u7@example.net"}, n / 1000},
		{Query{List: "other", Recipient: "u7@example.net"}, 0},
		{Query{Sender: "A17@B17.spam.example"}, 1},
		{Query{Client: "192.0.2.1", Since: now.Add(n / 2 * time.Microsecond)}, n / 2},
	} {
		got := 0
		if err := r.Each(t.Context(), test.q, func(Decision) error { got++; return nil }); err != nil || got != test.want {
			t.Errorf("%+v: %d rows, want %d: %v", test.q, got, test.want, err)
		}
	}
	totals, err := r.Totals(t.Context(), now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil || len(totals) == 0 || totals[0].Action != "reject" || totals[0].List != "blocked" {
		t.Errorf("totals: %+v, %v", totals, err)
	}
	top, err := r.Top(t.Context(), TopDomains, now, 2, Query{})
	if err != nil || len(top) != 2 || top[0].Count != n/100 {
		t.Errorf("top: %+v, %v", top, err)
	}
}

// textLogger returns a logger that writes to a builder. Read it after the Recorder's end.
func textLogger(to *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
