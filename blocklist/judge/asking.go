package judge

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Asker asks the lists in DNS about the senders of one message. It is safe for concurrent use.
type Asker interface {
	// Ask begins to ask a list about domains, and does not wait.
	Ask(list string, domains ...string)

	// Result returns what the list says of a domain. It waits as long as the list's answers
	// may take for the message, and no longer than the context.
	Result(ctx context.Context, list, domain string) blocklist.Answer

	// Skipped counts a sender that the list is not asked about, because its address may be
	// a wrong guess.
	Skipped(list string)
}

// Asking is the Judge of one message, whose senders are looked up in lists in DNS too.
type Asking struct {
	here  Judge
	asker Asker
	ahead sync.Once
}

// NewAsking returns the Judge of a View for one message.
func NewAsking(v *blocklist.View, a Asker) *Asking { return &Asking{here: New(v), asker: a} }

// View returns the View that answers.
func (j *Asking) View() *blocklist.View { return j.here.view }

// Generation returns the generation of the Set.
func (j *Asking) Generation() uint64 { return j.here.Generation() }

// Judge looks up one sender. What the lists here say comes first, and can spare questions. The
// first sender in the header begins the questions about all of them.
//
// Only addresses as they were written are asked about. What servers may make of other text
// is guessed, there is a lot of it, and it would tell others what the message says.
func (j *Asking) Judge(ctx context.Context, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	if !j.here.view.Asks(q.Stage) {
		return j.here.Judge(ctx, m, q)
	}
	if q.Reading != verdict.ReadAddress {
		for _, list := range j.here.view.Asked(q.Stage) {
			j.asker.Skipped(list)
		}
		return j.here.Judge(ctx, m, q)
	}
	if q.Stage == verdict.Header && m != nil {
		j.ahead.Do(func() { j.askAhead(m.HeaderSenders) })
	}
	a, err := sender.Parse(q.Address)
	if err != nil {
		return verdict.Verdict{}, err
	}
	v, err := j.here.view.LookupAsking(q.Stage, a, func(questions []blocklist.Question) { j.answer(ctx, questions) })
	return finish(v, err)
}

// answer asks all questions at once, and waits for the answers.
func (j *Asking) answer(ctx context.Context, questions []blocklist.Question) {
	for i := range questions {
		j.asker.Ask(questions[i].List, questions[i].Domain)
	}
	for i := range questions {
		q := &questions[i]
		q.Answer = j.asker.Result(ctx, q.List, q.Domain)
	}
}

// maxAhead bounds the different domains of a header that are asked about ahead. An Asker asks
// for fewer names.
const maxAhead = 32

// askAhead begins the questions about the senders in a header.
func (j *Asking) askAhead(senders []verdict.HeaderSender) {
	domains := map[string][]string{} // by list
	var seen []string
	for i := range senders {
		a, err := sender.Parse(senders[i].Address)
		if err != nil || a.IsNull() {
			continue
		}
		if !slices.Contains(seen, a.Domain()) {
			if len(seen) == maxAhead {
				break
			}
			seen = append(seen, a.Domain())
		}
		questions, err := j.here.view.Questions(verdict.Header, a)
		if err != nil {
			return // the lookup that follows reports it
		}
		for _, q := range questions {
			if !slices.Contains(domains[q.List], q.Domain) {
				domains[q.List] = append(domains[q.List], q.Domain)
			}
		}
	}
	for _, list := range j.here.view.Asked(verdict.Header) {
		if len(domains[list]) > 0 {
			j.asker.Ask(list, domains[list]...)
		}
	}
}

// Trace looks up one sender as Judge does, and returns every step with the verdict.
func (j *Asking) Trace(ctx context.Context, stage verdict.Stage, address string) (blocklist.Trace, error) {
	a, err := sender.Parse(address)
	if err != nil {
		return blocklist.Trace{}, err
	}
	return j.here.view.TraceAsking(stage, a, func(questions []blocklist.Question) { j.answer(ctx, questions) })
}

// finish returns the verdict of a Judge on what a View says.
func finish(v verdict.Verdict, err error) (verdict.Verdict, error) {
	if err != nil {
		return verdict.Verdict{}, fmt.Errorf("%w: %w", verdict.ErrNoAnswer, err)
	}
	v.Monitored = slices.DeleteFunc(v.Monitored, func(m verdict.Match) bool { return m.Shielded })
	return v, nil
}
