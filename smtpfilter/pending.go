package smtpfilter

import (
	"io"

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
		return s.refuseSender(t, &t.decided)
	}
	return s.decideWhole(t)
}

// decideWhole decides about a message that the next hop has but for its end, and that is not
// refused for all recipients.
func (s *session) decideWhole(t *transaction) wire.Reply {
	c := t.classes.DecideWhole(t.used(t.accepted), t.tags)
	switch {
	case c.Refuses():
		return s.refuseSender(t, &c)
	case c.Finding.Verdict.Action.Drops():
		t.discarded, t.accepted = append(t.discarded, t.accepted...), nil
		return s.discarded(t)
	}
	return wire.Reply{}
}

// finish decides by the signatures of the whole message.
func (s *session) finish(t *transaction, signatures []verdict.Signature) {
	classes := t.used(t.accepted, t.discarded)
	t.classes.Finish(s.server.ctx, signatures, classes)
	for _, class := range classes {
		s.observe(t, class)
	}
	t.classes.conclude(&t.decided, classes)
}
