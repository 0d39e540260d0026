package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"spamgate/internal/decisions"
)

// This file serves the history of decisions, and asks for it.

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

const pathDecisions = "/v1/decisions"

// paramAll asks for all decisions that match.
const paramAll = "all"

// find responds with a page of decisions, or with all of them, one at a time.
func (s *Server) find(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	all := v.Has(paramAll)
	v.Del(paramAll)
	q, err := decisions.ParseQuery(v)
	if err != nil {
		s.refuse(w, fmt.Errorf("%w: %w", ErrRequest, err))
		return
	}
	first := q
	if all {
		first.Limit = 1
	}
	page, err := s.options.History.Find(r.Context(), first)
	if err != nil {
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	l := lineWriter{w: w, control: http.NewResponseController(w), out: bufio.NewWriterSize(w, 32<<10)}
	l.json = json.NewEncoder(l.out)
	l.json.SetEscapeHTML(false)
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
		err = s.options.History.Each(r.Context(), q, func(d decisions.Decision) error { return l.line(d) })
	default:
		for i := range page.Decisions {
			if err = l.line(page.Decisions[i]); err != nil {
				break
			}
		}
	}
	end := DecisionsEnd{End: true}
	if err != nil {
		end.Error = err.Error()
	}
	if l.line(end) == nil {
		_ = l.out.Flush() // the caller may be gone
	}
}

// top responds with the most frequent names.
func (s *Server) top(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	kind := v.Get("kind")
	v.Del("kind")
	q, err := decisions.ParseQuery(v)
	if kinds := []string{decisions.TopSenders, decisions.TopDomains, decisions.TopLists, decisions.TopClients}; err == nil && !slices.Contains(kinds, kind) {
		err = fmt.Errorf("kind=%q: use %s", kind, strings.Join(kinds, ", "))
	}
	if err != nil {
		s.refuse(w, fmt.Errorf("%w: %w", ErrRequest, err))
		return
	}
	var t TopDecisions
	t.Ranked, err = s.options.History.Top(r.Context(), kind, q.Since, q.Limit, q)
	if err == nil {
		t.Reach, err = reach(r.Context(), s.options.History)
	}
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, t)
}

// reach returns the time of the oldest decision, or nil.
func reach(ctx context.Context, h History) (*time.Time, error) {
	page, err := h.Find(ctx, decisions.Query{Limit: 1})
	return page.Reach, err
}

// totals responds with the numbers of decisions.
func (s *Server) totals(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q, err := decisions.ParseQuery(v)
	for name := range v {
		if name != "since" && name != "until" {
			err = fmt.Errorf("totals do not take %q", name)
		}
	}
	if err != nil {
		s.refuse(w, fmt.Errorf("%w: %w", ErrRequest, err))
		return
	}
	var t DecisionTotals
	if t.Totals, err = s.options.History.Totals(r.Context(), q.Since, q.Until); err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, t)
}

// Find returns the decisions that match.
func (c *Client) Find(ctx context.Context, q decisions.Query) (page decisions.Page, err error) {
	header, err := c.decisions(ctx, q.Values(), func(d decisions.Decision) error {
		page.Decisions = append(page.Decisions, d)
		return nil
	})
	page.Reach, page.Next, page.Incomplete, page.Fault = header.Reach, header.Next, header.Incomplete, header.Fault
	return page, err
}

// Each calls each for all decisions that match, the newest first, and stops at its first error.
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
	response, err := c.send(ctx, http.MethodGet, pathDecisions+"?"+v.Encode(), nil)
	if err != nil {
		return header, impatient(ctx, err)
	}
	defer response.Body.Close()
	lines := json.NewDecoder(response.Body)
	if err := lines.Decode(&header); err != nil {
		return header, impatient(ctx, incomplete(err))
	}
	answered()
	for {
		var line struct {
			decisions.Decision
			DecisionsEnd
		}
		if err := lines.Decode(&line); err != nil {
			return header, incomplete(err)
		}
		if line.End {
			if line.Error != "" {
				return header, errors.New(line.Error)
			}
			return header, nil
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

// Top returns the most frequent names of a kind.
func (c *Client) Top(ctx context.Context, kind string, since time.Time, limit int, q decisions.Query) ([]decisions.Ranked, error) {
	q.Since, q.Limit = since, limit
	v := q.Values()
	v.Set("kind", kind)
	ctx, _, cancel := patience(ctx)
	defer cancel()
	var t TopDecisions
	err := c.call(ctx, http.MethodGet, pathDecisions+"/top?"+v.Encode(), nil, &t)
	return t.Ranked, impatient(ctx, err)
}

// Totals returns the numbers of decisions between two times.
func (c *Client) Totals(ctx context.Context, since, until time.Time) ([]decisions.Total, error) {
	v := decisions.Query{Since: since, Until: until}.Values()
	ctx, _, cancel := patience(ctx)
	defer cancel()
	var t DecisionTotals
	err := c.call(ctx, http.MethodGet, pathDecisions+"/totals?"+v.Encode(), nil, &t)
	return t.Totals, impatient(ctx, err)
}
