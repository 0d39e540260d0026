// Package judge answers for the lists of a Store: its Judge takes the address of
// a sender as it was written, and returns what the lists say of it.
package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Checker returns Judges of the lists that a Store serves at the time.
type Checker struct {
	Store interface{ Set() *blocklist.Set }
	Lists []string // the lists that count; nil: all

	// Unwrap says which senders that forwarders wrapped into an address are judged too.
	Unwrap sender.Wrappings

	// Asked returns the Asker of a new message. If it is nil, lists in DNS are not asked.
	Asked func() Asker

	// Prover returns the Prover of a new message. If it is nil, all proofs are pending.
	Prover func() Prover
}

// Prover proves the senders of one message. It is safe for concurrent use.
type Prover interface {
	// Prove returns whether one of the proofs holds for a sender. For the same facts about
	// the message it returns the same.
	Prove(ctx context.Context, m *verdict.Message, stage verdict.Stage, a sender.Address, by verdict.Proofs) verdict.Proof
}

// Judge returns the Judge of the present lists.
func (c Checker) Judge() verdict.Judge {
	j := c.Current()
	asks, proves := c.Asked != nil && j.view.Asks(verdict.AllStages), c.Prover != nil && j.view.Proofs() != 0
	if !asks && !proves {
		return j
	}
	asking := &Asking{here: j}
	if asks {
		asking.asker = c.Asked()
	}
	if proves {
		asking.prover = c.Prover()
	}
	return asking
}

// Current returns the Judge of the present lists that asks nobody.
func (c Checker) Current() Judge { return New(c.Store.Set().Only(c.Lists).Unwrapping(c.Unwrap)) }

// Judge answers for one View. It implements [verdict.RecipientJudge].
type Judge struct{ view *blocklist.View }

// New returns the Judge of a View.
func New(v *blocklist.View) Judge { return Judge{v} }

// View returns the View that answers.
func (j Judge) View() *blocklist.View { return j.view }

// Generation returns the generation of the Set.
func (j Judge) Generation() uint64 { return j.view.Set().Generation() }

// Proofs returns the proofs on which verdicts may depend.
func (j Judge) Proofs() verdict.Proofs { return j.view.Proofs() }

// KeysOf returns the keys under which lists hold entries for a recipient. It does not allocate
// if no list has entries for recipients.
func (j Judge) KeysOf(r verdict.Recipient) ([]string, error) {
	if !j.view.PerRecipient() || r.Domain == "" {
		return nil, nil
	}
	a, err := sender.Parse(r.Path)
	if err != nil {
		return nil, nil // no entry can be for it
	}
	keys, err := j.view.RecipientKeys(a)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verdict.ErrNoAnswer, err)
	}
	return keys, nil
}

// Judge looks up one sender. It asks nobody, and does not allocate if no list knows the sender.
func (j Judge) Judge(_ context.Context, _ *verdict.Message, q verdict.Query) (v verdict.Verdict, err error) {
	if q.Reading == verdict.ReadAddress {
		err = j.judge(&q, asked{}, &v)
	} else {
		err = j.guess(&q, &v)
	}
	return v, err
}

// asked is who is asked about a sender beside the lists here. Either may be nil.
type asked struct {
	answer func([]blocklist.Question)
	prove  func(sender.Address, verdict.Proofs) verdict.Proof
}

// maxWrapped bounds the senders that are judged because forwarders wrapped them into an
// address. Mail passes few forwarders that do so.
const maxWrapped = 4

// judge looks up an address as it was written, and the senders that forwarders wrapped into it.
// It sets the verdict, which is zero before.
func (j Judge) judge(q *verdict.Query, by asked, v *verdict.Verdict) error {
	a, err := sender.Parse(q.Address)
	if err != nil {
		return err
	}
	found, err := j.find(q, a, by)
	if err != nil {
		return noAnswer(err)
	}
	if _, _, wraps := sender.Unwrap(a, j.view.Wrappings()); wraps {
		return j.judgeWrapped(q, a, found, by, v)
	}
	if !found.IsZero() { // which is rare
		founds := [...]blocklist.Found{found}
		decide(founds[:], proveEach(by.prove, a), v)
	}
	return nil
}

// judgeWrapped looks up the senders that forwarders wrapped into an address, for which the lists
// hold what was found.
func (j Judge) judgeWrapped(q *verdict.Query, a sender.Address, found blocklist.Found, by asked, v *verdict.Verdict) error {
	chain, all := []sender.Address{a}, []blocklist.Found{found}
	inner, _, wraps := sender.Unwrap(a, j.view.Wrappings())
	for wraps && len(all) <= maxWrapped {
		found, err := j.find(q, inner, by)
		if err != nil {
			return noAnswer(err)
		}
		found.Named(inner)
		chain, all = append(chain, inner), append(all, found)
		inner, _, wraps = sender.Unwrap(inner, j.view.Wrappings())
	}
	decide(all, proveEach(by.prove, chain...), v)
	return nil
}

// find looks up one sender.
func (j Judge) find(q *verdict.Query, a sender.Address, by asked) (blocklist.Found, error) {
	return j.viewFor(q).Find(q.Stage, a, blocklist.FindOptions{For: q.For.Keys, Answer: by.answer})
}

// proveEach returns the function that proves one of several senders, nil if nobody does.
func proveEach(prove func(sender.Address, verdict.Proofs) verdict.Proof, chain ...sender.Address) func(int, verdict.Proofs) verdict.Proof {
	if prove == nil {
		return nil
	}
	return func(i int, by verdict.Proofs) verdict.Proof { return prove(chain[i], by) }
}

// viewFor returns the View of the lists that count for the recipients of a query.
func (j Judge) viewFor(q *verdict.Query) *blocklist.View {
	if q.For.Lists == nil {
		return j.view
	}
	return j.view.Only(q.For.Lists)
}

// guess looks up an address that may be a wrong guess, or of which only the domain counts. It sets
// the verdict, which is zero before.
func (j Judge) guess(q *verdict.Query, v *verdict.Verdict) error {
	o := blocklist.FindOptions{For: q.For.Keys, Blocks: q.Reading != verdict.ReadDomain}
	address := q.Address
	switch q.Reading {
	case verdict.ReadDomain:
		o.Kinds = blocklist.DomainKinds
	case verdict.ReadWord:
		o.Kinds = sender.KindSet(0).With(sender.KindAddress).With(sender.KindLocal)
	case verdict.ReadName:
		o.Kinds = sender.KindSet(0).With(sender.KindAddress)
	}
	if strings.HasSuffix(address, "@") {
		if q.Reading == verdict.ReadName {
			return nil
		}
		address += "invalid" // a domain that nobody has, and that no key is made of
		o.Kinds = sender.KindSet(0).With(sender.KindLocal)
	}
	a, err := sender.Parse(address)
	if err != nil {
		return err
	}
	found, err := j.viewFor(q).Find(q.Stage, a, o)
	if err != nil {
		return noAnswer(err)
	}
	if !found.IsZero() {
		decide([]blocklist.Found{found}, nil, v)
	}
	return nil
}

// noAnswer returns the error of a Judge for that of a View.
func noAnswer(err error) error { return fmt.Errorf("%w: %w", verdict.ErrNoAnswer, err) }

// decide sets the verdict of a Judge on what a View holds.
func decide(found []blocklist.Found, prove func(int, verdict.Proofs) verdict.Proof, v *verdict.Verdict) {
	*v = blocklist.Decide(found, prove)
	shielded := func(m verdict.Match) bool { return m.Shielded }
	v.Monitored = slices.DeleteFunc(v.Monitored, shielded)
	if v.Proved != nil {
		v.Proved.Monitored = slices.DeleteFunc(v.Proved.Monitored, shielded)
	}
}

// Trace looks up one sender as Judge does. It returns every step: one Trace for the address,
// with the verdict, and one for each sender that forwarders wrapped into it. It is counted
// nowhere.
func (j Judge) Trace(_ context.Context, _ *verdict.Message, q verdict.Query) ([]blocklist.Trace, error) {
	return j.trace(&q, asked{})
}

func (j Judge) trace(q *verdict.Query, by asked) ([]blocklist.Trace, error) {
	a, err := sender.Parse(q.Address)
	if err != nil {
		return nil, err
	}
	var traces []blocklist.Trace
	var chain []sender.Address
	var all []blocklist.Found
	for {
		t, found, err := j.viewFor(q).Trace(q.Stage, a, blocklist.FindOptions{For: q.For.Keys, Answer: by.answer})
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			found.Named(a)
		}
		traces, chain, all = append(traces, t), append(chain, a), append(all, found)
		inner, scheme, ok := sender.Unwrap(a, j.view.Wrappings())
		if !ok || len(all) > maxWrapped {
			break
		}
		traces[len(traces)-1].Wraps, a = scheme, inner
	}
	traces[0].Verdict = blocklist.Decide(all, proveEach(by.prove, chain...))
	return traces, nil
}
