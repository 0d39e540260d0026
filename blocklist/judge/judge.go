// Package judge answers for the lists of a Store: its Judge takes the address of
// a sender as it was written, and returns what the lists say of it.
package judge

import (
	"context"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Checker returns Judges of the lists that a Store serves at the time.
type Checker struct {
	Store interface{ Set() *blocklist.Set }
	Lists []string // the lists that count; nil: all

	// Asked returns the Asker of a new message. If it is nil, lists in DNS are not asked.
	Asked func() Asker
}

// Judge returns the Judge of the present lists.
func (c Checker) Judge() verdict.Judge {
	j := c.Current()
	if c.Asked != nil && j.view.Asks(verdict.AllStages) {
		return NewAsking(j.view, c.Asked())
	}
	return j
}

// Current returns the Judge of the present lists that asks none in DNS.
func (c Checker) Current() Judge { return New(c.Store.Set().Only(c.Lists)) }

// Judge answers for one View. It implements [verdict.Judge].
type Judge struct{ view *blocklist.View }

// New returns the Judge of a View.
func New(v *blocklist.View) Judge { return Judge{v} }

// View returns the View that answers.
func (j Judge) View() *blocklist.View { return j.view }

// Generation returns the generation of the Set.
func (j Judge) Generation() uint64 { return j.view.Set().Generation() }

// Judge looks up one sender. It asks no lists in DNS, and does not allocate if no list knows the sender.
func (j Judge) Judge(_ context.Context, _ *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	address, kinds := q.Address, sender.AllKinds
	switch q.Reading {
	case verdict.ReadWord:
		kinds = sender.KindSet(0).With(sender.KindAddress).With(sender.KindLocal)
	case verdict.ReadName:
		kinds = sender.KindSet(0).With(sender.KindAddress)
	}
	if q.Reading != verdict.ReadAddress && strings.HasSuffix(address, "@") {
		if q.Reading == verdict.ReadName {
			return verdict.Verdict{}, nil
		}
		address += "invalid" // a domain that nobody has, and that no key is made of
		kinds = sender.KindSet(0).With(sender.KindLocal)
	}
	a, err := sender.Parse(address)
	if err != nil {
		return verdict.Verdict{}, err
	}
	var v verdict.Verdict
	switch q.Reading {
	case verdict.ReadAddress:
		v, err = j.view.Lookup(q.Stage, a)
	case verdict.ReadDomain:
		v, err = j.view.LookupDomain(q.Stage, a)
	default:
		v, err = j.view.LookupBlocks(q.Stage, a, kinds)
	}
	return finish(v, err)
}

// Trace looks up one sender as Judge does, and returns every step with the
// verdict. It is counted nowhere.
func (j Judge) Trace(stage verdict.Stage, address string) (blocklist.Trace, error) {
	a, err := sender.Parse(address)
	if err != nil {
		return blocklist.Trace{}, err
	}
	return j.view.Trace(stage, a)
}
