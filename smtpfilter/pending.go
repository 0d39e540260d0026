package smtpfilter

import (
	"io"
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// A decision may depend on signatures. Then the message goes to the next hop and to a
// Verification at the same time, and the session decides when both have it whole: before the
// end of the message is sent to the next hop, which drops a message without an end.

// verification passes a message to a Verification. The zero verification does nothing.
type verification struct {
	of   Verification
	body io.Writer // of, without dot-stuffing
}

// verify begins to verify the signatures on which the decision depends.
func (s *session) verify(t *transaction, body *wire.Body, section []byte) verification {
	if !t.decided.Pending {
		return verification{}
	}
	of := t.settings.Signatures.Verify(s.server.ctx, t.classes.Awaited(t.used(t.accepted, t.discarded)))
	of.Write(unstuffed(body, section))
	v := verification{of, of}
	if body.Stuffed() {
		v.body = wire.NewUnstuffer(of)
	}
	return v
}

// write passes a piece of the body.
func (v verification) write(piece []byte) {
	if v.of != nil {
		v.body.Write(piece)
	}
}

// abort ends the verification, unless it has ended.
func (v verification) abort() {
	if v.of != nil {
		v.of.Abort()
	}
}

// judgeWhole decides about a message that is whole, if its decision is pending. A reply that is
// not zero is the client's: the message must not be delivered.
func (s *session) judgeWhole(t *transaction, v verification) wire.Reply {
	if v.of == nil {
		return wire.Reply{}
	}
	s.finish(t, v.of.Finish())
	if t.decided.Refuses() {
		return s.refuseSender(t, t.decided)
	}
	classes := t.used(t.accepted)
	var against []verdict.Finding
	for _, class := range classes {
		if f := class.Decides(); f.Verdict.Action >= verdict.Discard && !t.marks(f) {
			against = append(against, f)
		}
	}
	switch {
	case against == nil:
		return wire.Reply{}
	case len(against) == len(classes):
		t.discarded, t.accepted = append(t.discarded, t.accepted...), nil
		return s.discarded(t)
	}
	// The next hop has the message for recipients who are not to get it, and cannot forget
	// them alone. Nor can the message be tagged any more.
	c := Conclusion{Finding: verdict.Strictest(against), Mixed: true}
	if c.Finding.Verdict.Action == verdict.Discard {
		c.Finding.Verdict.Action = verdict.Reject
	}
	return s.refuseSender(t, c)
}

// marks reports whether the message has the tag field of a finding that would refuse it.
func (t *transaction) marks(f verdict.Finding) bool {
	tag := tagValue(f.Verdict.Match)
	return f.Verdict.Action != verdict.Discard && (slices.Contains(t.tags, tag) || slices.Contains(t.tags, tag+proofPending))
}

// finish decides by the signatures of the whole message.
func (s *session) finish(t *transaction, signatures []verdict.Signature) {
	classes := t.used(t.accepted, t.discarded)
	t.classes.Finish(s.server.ctx, signatures, classes)
	for _, class := range classes {
		s.observe(t, class)
	}
	t.decided = t.classes.Decide(classes)
}

// tagsAhead returns the tags for a message whose decision is pending: those that it has if no
// proof holds, if all do, or some. A recipient for whom the message is refused only if a proof
// does not hold has none.
func (t *transaction) tagsAhead() []string {
	var findings []verdict.Finding
	for _, class := range t.used(t.accepted) {
		if f := class.decidesProved(); f.Verdict.Action >= verdict.Defer {
			f.Verdict.Action = verdict.Tag
			findings = append(findings, f)
		}
		for _, f := range append([]verdict.Finding{class.Envelope}, class.Header...) {
			findings = append(findings, f)
			if !f.Verdict.Pending {
				continue
			}
			findings = append(findings, proved(f))
			for _, m := range f.Verdict.Matches {
				if m.Action == verdict.Tag && !m.Shielded && !m.Monitor {
					findings = append(findings, verdict.Finding{Verdict: verdict.Verdict{Action: verdict.Tag, Match: m}})
				}
			}
		}
	}
	return Tags(verdict.Finding{}, findings)
}
