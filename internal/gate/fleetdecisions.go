package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/fleet"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/joined"
	"spamgate/internal/managed"
)

// answerDecisions answers a question of another gate about the history.
func (f *fleetPart) answerDecisions(ctx context.Context, question []byte) ([]byte, error) {
	return fleetsearch.Answer(f.config().Fleet.Name, f.history.Find)(ctx, question)
}

// FleetDecisions implements admin.FleetGate.
func (g *adminHandler) FleetDecisions(ctx context.Context, q decisions.Query, only string) (fleetsearch.Page, error) {
	return g.fleet.decisions(ctx, q, only)
}

// decisions searches the histories of all gates, or of one. That of this gate does not depend on
// the fleet.
func (f *fleetPart) decisions(ctx context.Context, q decisions.Query, only string) (fleetsearch.Page, error) {
	name := f.config().Fleet.Name
	question := &fleetsearch.Question{Query: q, Asker: name, Only: only}
	answers, err := question.Collect(time.Now())
	if err != nil {
		return fleetsearch.Page{}, err
	}
	m, why := f.usable()
	if errors.Is(why, managed.ErrNoFleet) {
		return fleetsearch.Page{}, admin.ErrNoFleet
	}
	var own decisions.Page
	var ownErr error
	var replies *fleet.Replies
	var both joined.Group
	if only == "" || only == name {
		both.Go(func() { own, ownErr = question.Here(ctx, name, f.history.Find) })
	}
	if m != nil && only != name {
		both.Go(func() { replies, why = ask(ctx, m, question) })
	}
	both.Wait()
	if errors.Is(ctx.Err(), context.Canceled) { // after a deadline it is what was found until then
		return fleetsearch.Page{}, context.Cause(ctx)
	}
	if only == "" || only == name {
		answers.Own(name, own, ownErr)
	}
	page := collected(answers, replies, question)
	if why != nil && only != name {
		page.FleetError = why.Error()
	}
	return page, nil
}

// usable returns the member if the fleet can be used now, and else why not.
func (f *fleetPart) usable() (*fleet.Member, error) {
	f.mu.Lock()
	m, why := f.member, f.why
	f.mu.Unlock()
	if m == nil {
		return nil, why
	}
	if s := m.Status(); !s.Connected {
		return nil, errors.New("not connected: " + s.Trouble)
	}
	return m, nil
}

// ask asks other gates.
func ask(ctx context.Context, m *fleet.Member, q *fleetsearch.Question) (*fleet.Replies, error) {
	text, err := q.Encode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fleetsearch.AnswerTime)
	defer cancel()
	var only []string
	if q.Only != "" {
		only = []string{q.Only}
	}
	return m.Ask(ctx, fleetsearch.Subject, text, only...)
}

// collected merges the answers of this gate and of others; replies may be nil.
func collected(answers *fleetsearch.Answers, replies *fleet.Replies, q *fleetsearch.Question) fleetsearch.Page {
	if replies == nil {
		return answers.Page(nil)
	}
	for name, err := range replies.Errors {
		if name != q.Asker {
			answers.Failed(name, err)
		}
	}
	for name, answer := range replies.Answers {
		if name != q.Asker && (q.Only == "" || name == q.Only) {
			answers.Add(name, answer)
		}
	}
	return answers.Page(slices.DeleteFunc(replies.Missing, func(name string) bool { return name == q.Asker }))
}
