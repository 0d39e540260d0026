package blocklist

import (
	"slices"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// FindOptions say what counts in a lookup beside the lists' own entries.
type FindOptions struct {
	// Blocks looks up an address that may be a wrong guess, and so must not clear anybody:
	// neither allow lists nor exceptions count.
	Blocks bool

	// Kinds are the kinds of entries that count; 0 means all.
	Kinds sender.KindSet

	// For are the keys of a recipient, see [View.RecipientKeys].
	For []string

	// Answer answers questions to lists in DNS. It is called at most once, with all
	// questions about the sender, and only if the answers can change the verdict. If it
	// is nil, these lists do not count.
	Answer func([]Question)
}

// Found is what the lists hold for one sender. The zero Found holds nothing.
type Found struct {
	matches   []verdict.Match // one for each list
	overrides []int           // indexes of the matches of overriding lists
	stage     verdict.Stage
	monitor   bool // every list only monitors
}

// Find looks up a sender. For a sender whom no list knows it does not allocate.
//
// An error is our own failure, such as a damaged index or an unknown stage.
func (v *View) Find(stage verdict.Stage, a sender.Address, o FindOptions) (Found, error) {
	f := lookupState{blocks: o.Blocks, uncounted: v.uncounted}
	kinds := o.Kinds
	if kinds == 0 {
		kinds = sender.AllKinds
	}
	if err := v.search(stage, a, kinds, &f); err != nil {
		return Found{}, err
	}
	if len(o.For) > 0 {
		if err := v.searchFor(stage, a, kinds, o.For, &f); err != nil {
			return Found{}, err
		}
	}
	if o.Answer != nil {
		if questions := v.questions(&f, stage, a); questions != nil {
			o.Answer(questions)
			v.settleAnswers(&f, stage, a, questions)
		}
	}
	return v.set.found(stage, &f), nil
}

// IsZero reports whether no list has a match.
func (f Found) IsZero() bool { return len(f.matches) == 0 }

// found returns the lists' own matches.
func (s *Set) found(stage verdict.Stage, f *lookupState) Found {
	found := Found{stage: stage, monitor: s.monitor}
	for i := range f.lists {
		if f.lists[i].match.IsZero() {
			continue
		}
		if s.lists[i].Override {
			found.overrides = append(found.overrides, len(found.matches))
		}
		found.matches = append(found.matches, f.lists[i].match)
	}
	return found
}

// Decide returns the verdict on a sender, and on the senders that forwarders wrapped into it,
// if there are any: each of them follows the one that it was wrapped into. Their matches must
// name them, see [Found.Named].
//
// Prove is asked about the i-th of them, and only if the verdict depends on the answer. If it
// is nil, each proof is pending.
func Decide(found []Found, prove func(i int, by verdict.Proofs) verdict.Proof) (d verdict.Verdict) {
	n := 0
	for i := range found {
		n += len(found[i].matches)
	}
	if n == 0 {
		return d // exceptions only, or nothing
	}
	if claims := claimsOf(found); claims == nil {
		weighAll(&d, found)
	} else {
		decideProving(&d, found, claims, prove)
	}
	if found[0].monitor {
		monitored(&d)
	}
	return d
}

// Named sets the sender of the matches, which a forwarder wrapped into the address.
func (f Found) Named(a sender.Address) {
	for i := range f.matches {
		f.matches[i].Sender = a.String()
	}
}

// claim is a sender that has to be proven, so that allow entries count.
type claim struct {
	sender int
	by     verdict.Proofs
	state  verdict.ProofState
}

// decideProving decides with proofs, and asks for those on which the verdict depends.
func decideProving(d *verdict.Verdict, found []Found, claims []claim, prove func(i int, by verdict.Proofs) verdict.Proof) {
	stage := found[0].stage
	// with returns the verdict if the claims in these states hold.
	with := func(states ...verdict.ProofState) *verdict.Verdict {
		v := new(verdict.Verdict)
		weighAll(v, proven(found, claims, states))
		return v
	}
	without, best := with(), with(verdict.NotProven)
	if alike(stage, without, best) {
		*d = *without
		return
	}
	var proofs []verdict.Proof
	for i := range claims {
		c := &claims[i]
		p := verdict.Proof{By: c.by, State: verdict.ProofPending}
		if prove != nil {
			p = prove(c.sender, c.by)
		}
		proofs = append(proofs, p)
		if c.state = p.State; alike(stage, with(verdict.Proven), best) {
			break
		}
	}
	*d = *with(verdict.Proven)
	soften(d, with(verdict.Proven, verdict.ProofUnknown))
	proved := with(verdict.Proven, verdict.ProofPending)
	soften(proved, with(verdict.Proven, verdict.ProofPending, verdict.ProofUnknown))
	d.Proofs = proofs
	if !alike(stage, d, proved) {
		proved.Proofs = proofs
		d.Pending, d.Proved = true, proved
	}
}

// claimsOf returns each sender's different claims.
func claimsOf(found []Found) []claim {
	var claims []claim
	for i := range found {
		for _, m := range found[i].matches {
			c := claim{sender: i, by: m.ProvenBy}
			if c.by != 0 && !slices.Contains(claims, c) {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// proven returns a copy of what the lists hold, in which the allow matches count whose claims
// are in one of the states.
func proven(found []Found, claims []claim, states []verdict.ProofState) []Found {
	found = slices.Clone(found)
	for i := range found {
		found[i].matches = slices.Clone(found[i].matches)
		for k := range found[i].matches {
			m := &found[i].matches[k]
			m.Unproven = m.ProvenBy != 0 && !slices.ContainsFunc(claims, func(c claim) bool {
				return c.sender == i && c.by == m.ProvenBy && slices.Contains(states, c.state)
			})
		}
	}
	return found
}

// alike reports whether two verdicts on a sender at a stage have the same consequences. Only
// the reverse-path can clear the message.
func alike(stage verdict.Stage, a, b *verdict.Verdict) bool {
	return a.Action == b.Action &&
		(stage != verdict.Envelope || a.ClearsMessage == b.ClearsMessage && a.MayClear == b.MayClear)
}

// soften makes a verdict defer what it would refuse for good, if the verdict with the proofs that
// have no answer now would be milder.
func soften(v, answered *verdict.Verdict) {
	if answered.Action < v.Action && v.Action > verdict.Tag {
		v.Action = verdict.Defer
	}
	v.MayClear = answered.ClearsMessage && !v.ClearsMessage
}
