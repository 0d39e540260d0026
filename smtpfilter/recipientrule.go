package smtpfilter

import (
	"slices"

	"spamgate/blocklist/verdict"
)

// RecipientRule says what counts for some recipients.
type RecipientRule struct {
	// Name names the rule in logs and tools.
	Name string

	// Match reports whether the rule is for a recipient.
	Match func(verdict.Recipient) bool

	// Exempt makes the recipients reachable by every sender.
	Exempt bool

	// Lists are the names of the lists that count; nil means all.
	Lists []string

	// MaxAction bounds the action of listed senders; Accept means no bound. With Tag the
	// recipients get all mail.
	MaxAction verdict.Action

	// Monitor makes every list only log.
	Monitor bool
}

// MixedHeaders says what becomes of a message if the senders in its header are refused for
// some recipients only.
type MixedHeaders uint8

const (
	// MixedRefuse refuses it for all, so that nobody gets listed mail to all recipients by
	// adding one that takes it.
	MixedRefuse MixedHeaders = iota

	// MixedTag tags it for all.
	MixedTag
)

// RuleOf returns the first rule that is for a recipient, nil if none is.
func (p *Policy) RuleOf(rcpt verdict.Recipient) *RecipientRule {
	for i := range p.Recipients {
		if r := &p.Recipients[i]; r.Match(rcpt) {
			return r
		}
	}
	return nil
}

// apply makes of a verdict what counts for the rule's recipients.
func (r *RecipientRule) apply(v *verdict.Verdict) {
	if !r.Monitor && r.MaxAction == verdict.Accept {
		return
	}
	pending, ifProved, proofs := v.Pending, v.Proved, v.Proofs
	r.bound(v)
	if ifProved != nil {
		proved := *ifProved
		r.bound(&proved)
		v.Pending, v.Proved, v.Proofs = pending, &proved, proofs // the domains whose signatures are verified
		if proved.Action == v.Action && proved.ClearsMessage == v.ClearsMessage && proved.MayClear == v.MayClear {
			v.Pending, v.Proved = false, nil // the bound leaves nothing to wait for
		}
	}
}

// bound applies the rule to a verdict without what is pending.
func (r *RecipientRule) bound(v *verdict.Verdict) {
	switch {
	case r.Monitor && v.Would == nil:
		v.Pending, v.Proved = false, nil
		*v = v.Monitor()
		v.Monitored = slices.DeleteFunc(v.Monitored, func(m verdict.Match) bool { return m.Shielded })
	case r.MaxAction != verdict.Accept:
		v.Action = min(v.Action, r.MaxAction)
	}
}
