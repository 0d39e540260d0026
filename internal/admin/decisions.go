package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
)

// This file has the history of decisions, at both ends of the socket.

// History is the history of decisions: a *decisions.Reader, or one that knows what is not
// committed yet.
type History interface {
	Find(context.Context, decisions.Query) (decisions.Page, error)
	Each(context.Context, decisions.Query, func(decisions.Decision) error) error
	Top(ctx context.Context, kind string, since time.Time, limit int, q decisions.Query) ([]decisions.Ranked, error)
	Totals(ctx context.Context, since, until time.Time) ([]decisions.Total, error)
}

// DecisionsHeader precedes the decisions, which follow as JSON lines.
type DecisionsHeader struct {
	// Reach is the time of the oldest decision in the history; nil if that is empty.
	Reach *time.Time `json:"reaches_back_to,omitempty"`

	// Next continues after the last decision, if there are more. Incomplete says that the
	// search took too long.
	Next       decisions.Cursor `json:"next,omitempty"`
	Incomplete bool             `json:"incomplete,omitempty"`

	// Fault says why the history stands still: the newest decisions are not in it.
	Fault string `json:"stands_still,omitempty"`
}

// DecisionsEnd follows the decisions: without it the response is incomplete.
type DecisionsEnd struct {
	End   bool   `json:"end"`
	Error string `json:"error,omitempty"`
}

// TopDecisions are the most frequent senders, say.
type TopDecisions struct {
	Ranked []decisions.Ranked `json:"ranked"`
	Reach  *time.Time         `json:"reaches_back_to,omitempty"`
}

// DecisionTotals are the numbers of decisions.
type DecisionTotals struct {
	Totals []decisions.Total `json:"totals"`
}

// The fields of a search beside those of a decisions.Query: all decisions that match, a kind of
// ranking, the only gate of the fleet that is to be asked.
const (
	paramAll  = "all"
	paramKind = "kind"
	paramGate = "gate"
)

// search is a request to search the history: the fields of its URL.
type search struct{ url.Values }

func (s *search) encode() (url.Values, io.Reader) { return s.Values, nil }

func (s *search) decode(c *call) error {
	s.Values = c.r.URL.Query()
	return nil
}

// take returns a field that is not one of a decisions.Query, and removes it.
func (s search) take(name string) string {
	defer s.Del(name)
	return s.Get(name)
}

// query returns the query that the fields describe.
func (s search) query() (decisions.Query, error) {
	q, err := decisions.ParseQuery(s.Values)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return q, err
}

// find responds with a page of decisions, or with all of them, one at a time.
func (c *call) find(s search) (None, error) {
	all := s.Has(paramAll)
	s.take(paramAll)
	q, err := s.query()
	if err != nil {
		return None{}, err
	}
	first := q
	if all {
		first.Limit = 1
	}
	page, err := c.options.History.Find(c.ctx, first)
	if err != nil {
		return None{}, err
	}
	l := c.lines()
	header := DecisionsHeader{Reach: page.Reach, Fault: page.Fault}
	if !all {
		header.Next, header.Incomplete = page.Next, page.Incomplete
	}
	if err = l.line(header); err == nil && all { // the rows may be far between
		err = errors.Join(l.out.Flush(), l.control.Flush())
	}
	switch {
	case err != nil:
	case all:
		err = c.options.History.Each(c.ctx, q, func(d decisions.Decision) error { return l.line(d) })
	default:
		for i := 0; i < len(page.Decisions) && err == nil; i++ {
			err = l.line(page.Decisions[i])
		}
	}
	end := DecisionsEnd{End: true}
	if err != nil {
		end.Error = err.Error()
	}
	l.end(end)
	return None{}, nil
}

// top replies with the most frequent names.
func (c *call) top(s search) (t TopDecisions, err error) {
	kind := s.take(paramKind)
	q, err := s.query()
	if kinds := []string{decisions.TopSenders, decisions.TopDomains, decisions.TopLists, decisions.TopClients}; err == nil && !slices.Contains(kinds, kind) {
		err = fmt.Errorf("%w: kind=%q: use %s", ErrRequest, kind, strings.Join(kinds, ", "))
	}
	if err != nil {
		return t, err
	}
	if t.Ranked, err = c.options.History.Top(c.ctx, kind, q.Since, q.Limit, q); err != nil {
		return t, err
	}
	oldest, err := c.options.History.Find(c.ctx, decisions.Query{Limit: 1})
	t.Reach = oldest.Reach
	return t, err
}

// totals replies with the numbers of decisions.
func (c *call) totals(s search) (t DecisionTotals, err error) {
	q, err := s.query()
	for name := range s.Values {
		if name != "since" && name != "until" {
			err = fmt.Errorf("%w: totals do not take %q", ErrRequest, name)
		}
	}
	if err == nil {
		t.Totals, err = c.options.History.Totals(c.ctx, q.Since, q.Until)
	}
	return t, err
}

// Find implements [History].
func (c *Client) Find(ctx context.Context, q decisions.Query) (page decisions.Page, err error) {
	header, err := c.decisions(ctx, q.Values(), func(d decisions.Decision) error {
		page.Decisions = append(page.Decisions, d)
		return nil
	})
	page.Reach, page.Next, page.Incomplete, page.Fault = header.Reach, header.Next, header.Incomplete, header.Fault
	return page, err
}

// Each implements [History].
func (c *Client) Each(ctx context.Context, q decisions.Query, each func(decisions.Decision) error) error {
	v := q.Values()
	v.Set(paramAll, "")
	_, err := c.decisions(ctx, v, each)
	return err
}

// decisions asks for decisions.
func (c *Client) decisions(ctx context.Context, v url.Values, each func(decisions.Decision) error) (header DecisionsHeader, err error) {
	ctx, answered, cancel := patience(ctx)
	defer cancel()
	lines, err := send(ctx, c, opDecisions, search{v})
	if err == nil {
		defer lines.Close()
		err = lines.next(&header)
	}
	if err != nil {
		return header, impatient(ctx, err)
	}
	answered()
	for {
		var line struct {
			decisions.Decision
			DecisionsEnd
		}
		if err := lines.next(&line); err != nil || line.End {
			return header, cmp.Or(err, endError(line.Error))
		}
		if err := each(line.Decision); err != nil {
			return header, err
		}
	}
}

// searchTimeout bounds the wait for the first line of an answer. A search takes a few seconds at
// most, a ranking of ten million decisions more.
var searchTimeout = time.Minute

// errSilent says that the gate does not answer. Use errors.Is.
var errSilent = errors.New("the gate is running, and does not answer; if it was stopped (kill -STOP), continue it (kill -CONT), or else restart it")

// patience returns a context that ends with errSilent unless answered is called in time.
func patience(ctx context.Context) (_ context.Context, answered func() bool, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(searchTimeout, func() { end(errSilent) })
	return ctx, timer.Stop, func() { timer.Stop(); end(nil) }
}

// impatient returns errSilent for an error that it has caused.
func impatient(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

// Top implements [History].
func (c *Client) Top(ctx context.Context, kind string, since time.Time, limit int, q decisions.Query) ([]decisions.Ranked, error) {
	q.Since, q.Limit = since, limit
	v := q.Values()
	v.Set(paramKind, kind)
	ctx, _, cancel := patience(ctx)
	defer cancel()
	t, err := Call(ctx, c, opTop, search{v})
	return t.Ranked, impatient(ctx, err)
}

// Totals implements [History].
func (c *Client) Totals(ctx context.Context, since, until time.Time) ([]decisions.Total, error) {
	ctx, _, cancel := patience(ctx)
	defer cancel()
	t, err := Call(ctx, c, opTotals, search{decisions.Query{Since: since, Until: until}.Values()})
	return t.Totals, impatient(ctx, err)
}

// FleetDecisions returns decisions of all members of the fleet, or of the one that is named.
func (c *Client) FleetDecisions(ctx context.Context, q decisions.Query, only string) (fleetsearch.Page, error) {
	v := q.Values()
	if only != "" {
		v.Set(paramGate, only)
	}
	return Call(ctx, c, opFleetDecisions, search{v})
}
