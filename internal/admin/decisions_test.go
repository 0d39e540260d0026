package admin

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
	"spamgate/internal/unixsocket"
)

// listenHistory opens a server with a history of these decisions.
func listenHistory(t *testing.T, h History) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin.sock")
	listenAt(t, Options{Gate: &fakeGate{}, History: h, Socket: unixsocket.Socket{Path: path, Mode: 0o600}})
	return dial(t, path)
}

// keep returns a history that has these decisions.
func keep(t *testing.T, all ...decisions.Decision) *decisions.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "decisions")
	w, err := decisions.Open(decisions.Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		w.Record(&all[i])
	}
	if err := errors.Join(w.Sync(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	r := decisions.NewReader(dir)
	t.Cleanup(func() { r.Close() })
	return r
}

// TestDecisions asks a history directly and over the socket: the answers are the same, also of
// texts that nobody should write in JSON lines.
func TestDecisions(t *testing.T) {
	instant := time.Now().UTC().Truncate(time.Second)
	row := func(id, sender, list string) decisions.Decision {
		instant = instant.Add(time.Millisecond)
		return decisions.Decision{ID: id, Time: instant, Last: instant, Event: "refused", Level: "INFO", Count: 1, Client: "192.0.2.1:25", Sender: sender,
			Recipients: []string{"ann@example.net"}, Action: "reject", List: list, Reason: "\n{\"end\":true}\u2028<b>", Duration: time.Millisecond,
			Attrs: []decisions.Attr{{Key: "end", Value: "true"}}}
	}
	r := keep(t, row("AAAAAAAAAAAA", "a@a.example", "one"), row("BBBBBBBBBBBB", "b@a.example", "two"), row("CCCCCCCCCCCC", "a@a.example", "one"))
	c := listenHistory(t, r)
	ctx := t.Context()
	for _, q := range []decisions.Query{
		{}, {Limit: 2}, {Sender: "a@a.example"}, {List: "two"}, {ID: "CCCCCCCCCCCC"}, {List: "three"}, {Since: instant}, {Until: instant}, {Address: "ann@example.net", Limit: 1},
	} {
		want, err := r.Find(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Find(ctx, q); err != nil || !same(got, want) {
			t.Errorf("%+v:\n%+v, %v\nwant\n%+v", q, got, err, want)
		}
		var each, wantEach []string
		if err := r.Each(ctx, q, func(d decisions.Decision) error { wantEach = append(wantEach, d.ID); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := c.Each(ctx, q, func(d decisions.Decision) error { each = append(each, d.ID); return nil }); err != nil || !reflect.DeepEqual(each, wantEach) {
			t.Errorf("%+v: each %q, %v; want %q", q, each, err, wantEach)
		}
		ranked, err := r.Top(ctx, decisions.TopSenders, instant.Add(-time.Hour), 5, q)
		if err != nil {
			t.Fatal(err)
		}
		if q.Until.IsZero() { // Top takes since alone
			if got, err := c.Top(ctx, decisions.TopSenders, instant.Add(-time.Hour), 5, q); err != nil || len(got) != len(ranked) || len(got) > 0 && got[0].Count != ranked[0].Count {
				t.Errorf("%+v: top %+v, %v; want %+v", q, got, err, ranked)
			}
		}
	}
	page, err := c.Find(ctx, decisions.Query{Limit: 2})
	if err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	if rest, err := c.Find(ctx, decisions.Query{Before: page.Next}); err != nil || len(rest.Decisions) != 1 || rest.Decisions[0].ID != "AAAAAAAAAAAA" {
		t.Errorf("%+v, %v", rest, err)
	}
	if totals, err := c.Totals(ctx, instant.Add(-time.Hour), instant.Add(time.Hour)); err != nil || len(totals) != 2 {
		t.Errorf("%+v, %v", totals, err)
	}
	stop := errors.New("enough")
	if err := c.Each(ctx, decisions.Query{}, func(decisions.Decision) error { return stop }); err != stop {
		t.Errorf("each ended with %v", err)
	}
}

// same reports whether two pages are equal, times as such.
func same(a, b decisions.Page) bool {
	if len(a.Decisions) != len(b.Decisions) || a.Next != b.Next || a.Incomplete != b.Incomplete || !a.Reach.Equal(*b.Reach) {
		return false
	}
	for i := range a.Decisions {
		x, y := a.Decisions[i], b.Decisions[i]
		if !x.Time.Equal(y.Time) || !x.Last.Equal(y.Last) {
			return false
		}
		x.Time, x.Last, y.Time, y.Last = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// brokenHistory fails in the midst of its decisions.
type brokenHistory struct{ History }

func (b brokenHistory) Each(_ context.Context, _ decisions.Query, each func(decisions.Decision) error) error {
	if err := each(decisions.Decision{ID: "AAAAAAAAAAAA"}); err != nil {
		return err
	}
	return errors.New("the disk is broken")
}

// TestDecisionsBroken: an export that breaks off is an error, not a short one.
func TestDecisionsBroken(t *testing.T) {
	c := listenHistory(t, brokenHistory{keep(t)})
	n := 0
	err := c.Each(t.Context(), decisions.Query{}, func(decisions.Decision) error { n++; return nil })
	if n != 1 || err == nil || !strings.Contains(err.Error(), "the disk is broken") {
		t.Errorf("%d decisions, %v", n, err)
	}
	_, err = c.Find(t.Context(), decisions.Query{Before: "x"})
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != 400 || !errors.Is(err, decisions.ErrCursor) {
		t.Errorf("a bad place: %v", err)
	}
	if page, err := c.Find(t.Context(), decisions.Query{}); err != nil || page.Decisions != nil || page.Reach != nil {
		t.Errorf("an empty history: %+v, %v", page, err)
	}
}

// silentHistory answers nothing until it is let go.
type silentHistory struct {
	*decisions.Reader
	end chan struct{}
}

func (h silentHistory) Find(context.Context, decisions.Query) (decisions.Page, error) {
	<-h.end
	return decisions.Page{}, nil
}

func (h silentHistory) Top(context.Context, string, time.Time, int, decisions.Query) ([]decisions.Ranked, error) {
	<-h.end
	return nil, nil
}

// TestDecisionsSilent: who asks a gate that was stopped is told so, some time.
func TestDecisionsSilent(t *testing.T) {
	h := silentHistory{keep(t), make(chan struct{})}
	c := listenHistory(t, h)
	before := searchTimeout
	searchTimeout = 10 * time.Millisecond
	t.Cleanup(func() {
		searchTimeout = before
		close(h.end)
	})
	for name, ask := range map[string]func() error{
		"find": func() error { _, err := c.Find(t.Context(), decisions.Query{}); return err },
		"each": func() error {
			return c.Each(t.Context(), decisions.Query{}, func(decisions.Decision) error { return nil })
		},
		"top": func() error {
			_, err := c.Top(t.Context(), decisions.TopLists, time.Time{}, 1, decisions.Query{})
			return err
		},
	} {
		if err := ask(); !errors.Is(err, errSilent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// faultyHistory stands still.
type faultyHistory struct{ *decisions.Reader }

func (h faultyHistory) Find(ctx context.Context, q decisions.Query) (decisions.Page, error) {
	page, err := h.Reader.Find(ctx, q)
	page.Fault = "the disk is full"
	return page, err
}

func TestDecisionsFault(t *testing.T) {
	c := listenHistory(t, faultyHistory{keep(t)})
	if page, err := c.Find(t.Context(), decisions.Query{}); err != nil || page.Fault != "the disk is full" {
		t.Errorf("%+v, %v", page, err)
	}
}
