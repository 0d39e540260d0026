package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/term"
)

// Lines judges many addresses, which have no recipients, and prints a line for each of those
// that are not accepted. It is not safe for concurrent use; see On.
type Lines struct {
	session session
	format  LineFormat
	out     io.Writer
	json    *json.Encoder
}

// LineFormat says what Lines prints.
type LineFormat struct {
	JSON bool // an object for an address; else fields with tabs between
	All  bool // also addresses that are accepted
}

// Lines returns what judges addresses as the listener or door of the question does.
func (e *Engine) Lines(q Question, f LineFormat) (*Lines, error) {
	k, err := e.session(q)
	if err != nil {
		return nil, err
	}
	return &Lines{session: *k, format: f}, nil
}

// On returns a copy that prints on w, for a goroutine of its own.
func (l *Lines) On(w io.Writer) *Lines {
	on := *l
	on.out, on.json = w, json.NewEncoder(w)
	on.json.SetEscapeHTML(false)
	return &on
}

// Judge judges one address, and prints the result unless the address is accepted. It reports
// whether another action than accept was found. Most addresses are in no list, and need only a
// lookup that allocates nothing. What is wrong with an address is printed, too.
func (l *Lines) Judge(ctx context.Context, address string) (listed bool, err error) {
	k := &l.session
	if address == "" || !l.format.All && k.isUnknown(address) {
		return false, nil
	}
	r, envelope, header := k.result(ctx, address)
	listed = max(envelope.Verdict.Action, header.Verdict.Action) != verdict.Accept
	monitored := append(envelope.Verdict.Monitored, header.Verdict.Monitored...)
	if r.Action == verdict.Accept.String() && len(monitored) > 0 && !l.format.JSON {
		r.Action = "monitor"
		envelope.Verdict.Match = monitored[0]
	}
	if r.Action != verdict.Accept.String() || len(monitored) > 0 || l.format.All {
		if err := l.print(r, envelope, header); err != nil {
			return listed, err
		}
	}
	switch {
	case envelope.Err == nil:
		return listed, header.Err
	case envelope.NoAnswer():
		return listed, envelope.Err
	}
	return listed, fmt.Errorf("%q is not an address: %w", address, envelope.Err)
}

// isUnknown reports whether no list has an entry for an address.
func (k *session) isUnknown(address string) bool {
	a, err := sender.Parse(address)
	if err != nil || k.asks() {
		return false
	}
	if _, _, wraps := sender.Unwrap(a, k.judge.View().Wrappings()); wraps {
		return false
	}
	d, err := k.judge.View().Lookup(verdict.Envelope, a)
	if err == nil && d.Matches == nil && !k.alike {
		d, err = k.judge.View().Lookup(verdict.Header, a)
	}
	return err == nil && d.Matches == nil
}

// print prints the result for one address on a line, for programs.
func (l *Lines) print(r addressResult, envelope, header verdict.Finding) error {
	if l.format.JSON {
		return l.json.Encode(r)
	}
	f := envelope
	if header.Verdict.Action > envelope.Verdict.Action {
		f = header
	}
	m := f.Verdict.Match
	where, reason := "", m.Reason
	if !m.IsZero() {
		where = source(m)
	}
	if f.Err != nil {
		reason = f.Err.Error()
	}
	_, err := fmt.Fprintf(l.out, "%s\t%s\t%s\t%s\t%s\n", r.Action, term.OneField.Replace(r.Address), m.List, where, term.OneField.Replace(reason))
	return err
}
