package gate

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/managed"
)

// askDecisions asks a gate for decisions: a decisions.Page. The question is an encoded
// decisions.Query.
const askDecisions = "decisions"

// Bounds of an answer to another gate.
const (
	maxAnswerRows  = 500
	maxAnswerBytes = 500 << 10
)

// answerDecisions answers askDecisions. The question may come from anybody who has the
// credentials of the fleet.
func (f *fleetPart) answerDecisions(ctx context.Context, question []byte) ([]byte, error) {
	v, err := url.ParseQuery(string(question))
	if err != nil {
		return nil, errors.New("the question is invalid")
	}
	q, err := decisions.ParseQuery(v)
	if err != nil {
		return nil, err
	}
	q.Limit = min(max(1, q.Limit), maxAnswerRows)
	page, err := f.history.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	return encodePage(page)
}

// encodePage encodes a page, without the oldest rows if it is too long for an answer.
func encodePage(page decisions.Page) ([]byte, error) {
	size := 0
	for i := range page.Decisions {
		row, err := json.Marshal(page.Decisions[i])
		if err != nil {
			return nil, err
		}
		if size += len(row); size > maxAnswerBytes {
			page.Decisions, page.Incomplete = page.Decisions[:i], true
			break
		}
	}
	return json.Marshal(page)
}

// FleetDecisions implements admin.FleetGate.
func (g *adminHandler) FleetDecisions(ctx context.Context, q decisions.Query) (admin.FleetDecisions, error) {
	d := admin.FleetDecisions{Members: map[string]decisions.Page{}, Errors: map[string]string{}}
	m, err := g.fleet.wait(ctx)
	if errors.Is(err, managed.ErrNoFleet) {
		err = admin.ErrNoFleet
	}
	if err != nil {
		return d, err
	}
	ctx, cancel := context.WithTimeout(ctx, fleetAnswerTime)
	defer cancel()
	r, err := m.Ask(ctx, askDecisions, []byte(q.Values().Encode()))
	if err != nil {
		return d, err
	}
	d.Missing = r.Missing
	for name, err := range r.Errors {
		d.Errors[name] = err.Error()
	}
	for name, answer := range r.Answers {
		var page decisions.Page
		if err := json.Unmarshal(answer, &page); err != nil {
			d.Errors[name] = "its answer is invalid: " + err.Error()
			continue
		}
		d.Members[name] = page
	}
	return d, nil
}
