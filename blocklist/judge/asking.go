package judge

import (
	"context"
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

// Asking is the Judge of one message, which asks others too: lists in DNS, and whether a
// sender is proven.
type Asking struct {
	here   Judge
	asker  Asker  // may be nil
	prover Prover // may be nil
	ahead  sync.Once
}

// NewAsking returns the Judge for one message. The Asker and the Prover may be nil.
func NewAsking(j Judge, a Asker, p Prover) *Asking { return &Asking{here: j, asker: a, prover: p} }

// View returns the View that answers.
func (j *Asking) View() *blocklist.View { return j.here.view }

// Generation returns the generation of the Set.
func (j *Asking) Generation() uint64 { return j.here.Generation() }

// Proofs returns the proofs on which verdicts may depend.
func (j *Asking) Proofs() verdict.Proofs { return j.here.Proofs() }

// KeysOf returns the keys under which lists hold entries for a recipient.
func (j *Asking) KeysOf(r verdict.Recipient) ([]string, error) { return j.here.KeysOf(r) }

// Judge looks up one sender. What the lists here say comes first, and can spare questions. The
// first sender in the header begins the questions about all of them.
//
// Only addresses as they were written are asked about. What servers may make of other text
// is guessed, there is a lot of it, and it would tell others what the message says.
func (j *Asking) Judge(ctx context.Context, m *verdict.Message, q verdict.Query) (v verdict.Verdict, err error) {
	if q.Reading != verdict.ReadAddress {
		j.skip(&q)
		err = j.here.guess(&q, &v)
		return v, err
	}
	if q.Stage == verdict.Header && m != nil && j.asks(&q) {
		j.ahead.Do(func() { j.askAhead(m.HeaderSenders) })
	}
	err = j.here.judge(&q, j.asked(ctx, m, &q), &v)
	return v, err
}

// skip counts a sender that the lists in DNS are not asked about.
func (j *Asking) skip(q *verdict.Query) {
	if j.asks(q) {
		for _, list := range j.here.viewFor(q).Asked(q.Stage) {
			j.asker.Skipped(list)
		}
	}
}

// asks reports whether lists in DNS count for a sender.
func (j *Asking) asks(q *verdict.Query) bool {
	return j.asker != nil && j.here.viewFor(q).Asks(q.Stage)
}

// asked returns who is asked about a sender.
func (j *Asking) asked(ctx context.Context, m *verdict.Message, q *verdict.Query) asked {
	return asked{j.answers(ctx, q), j.proofs(ctx, m, q.Stage)}
}

// answers returns the function that answers questions, nil if nobody does.
func (j *Asking) answers(ctx context.Context, q *verdict.Query) func([]blocklist.Question) {
	if !j.asks(q) {
		return nil
	}
	return func(questions []blocklist.Question) { j.answer(ctx, questions) }
}

// proofs returns the function that proves senders, nil if nobody does.
func (j *Asking) proofs(ctx context.Context, m *verdict.Message, stage verdict.Stage) func(sender.Address, verdict.Proofs) verdict.Proof {
	if j.prover == nil || m == nil {
		return nil
	}
	return func(a sender.Address, by verdict.Proofs) verdict.Proof {
		return j.prover.Prove(ctx, m, stage, a, by)
	}
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
func (j *Asking) Trace(ctx context.Context, m *verdict.Message, q verdict.Query) ([]blocklist.Trace, error) {
	return j.here.trace(&q, j.asked(ctx, m, &q))
}
