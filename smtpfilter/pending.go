package smtpfilter

import (
	"context"
	"io"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// A decision may depend on signatures. Then the message goes to the next hop and to a
// Verification at the same time, and the session decides when both have it whole: before the
// end of the message is sent to the next hop, which drops a message without an end.

// verification passes a message to a Verification. The zero verification does nothing.
type verification struct {
	signatures Verification
	body       io.Writer // of, without dot-stuffing
}

// verify begins to verify the signatures on which the decision depends.
func (s *session) verify(t *transaction, body *wire.Body, section []byte) verification {
	if !t.decided.Pending {
		return verification{}
	}
	verifier := t.settings.Signatures.Verify(s.server.ctx, t.Awaited())
	verifier.Write(unstuffed(body, section))
	v := verification{verifier, verifier}
	if body.Stuffed() {
		v.body = wire.NewUnstuffer(verifier)
	}
	return v
}

// write passes a piece of the body.
func (v verification) write(piece []byte) {
	if v.signatures != nil {
		v.body.Write(piece)
	}
}

// abort ends the verification, unless it has ended.
func (v verification) abort() {
	if v.signatures != nil {
		v.signatures.Abort()
	}
}

// judgeWhole decides about a message that is whole, if its decision is pending. A reply that is
// not zero is the client's: the message must not be delivered.
func (s *session) judgeWhole(t *transaction, v verification) wire.Reply {
	if v.signatures == nil {
		return wire.Reply{}
	}
	s.finish(t, v.signatures.Finish())
	if t.decided.Refuses() {
		return s.refuseSender(t)
	}
	if t.drop(); len(t.accepted) == 0 {
		return s.discarded(t)
	}
	return wire.Reply{}
}

// finish decides by the signatures of the whole message.
func (s *session) finish(t *transaction, signatures []verdict.Signature) {
	t.Finish(signatures)
	for _, class := range t.Used() {
		s.observe(t, class)
	}
	t.Decide()
}

// SignatureVerifier verifies the DKIM signatures of messages (RFC 6376) while they pass. Its
// methods are safe for concurrent use.
type SignatureVerifier interface {
	// Verify begins with a message. Only signatures by the domains are verified, which are
	// in normal form: a verdict waits for these. The end of ctx ends all waits.
	Verify(ctx context.Context, domains []string) Verification
}

// Verification verifies the signatures of one message. One goroutine uses it, and ends it
// with Finish or Abort.
type Verification interface {
	// Write takes a piece of the message as the client sent it, from its first header
	// field on, without dot-stuffing. It never fails. All calls together wait for a few
	// seconds at most.
	io.Writer

	// Finish says that the message is whole. It returns the signatures in the order of the
	// header, as Message.Signatures has them; none is pending any more. It waits for
	// answers for a few seconds at most, since the next hop waits for the end of the
	// message meanwhile.
	Finish() []verdict.Signature

	// Abort ends the verification of a message that is not whole. A second Abort, and one
	// after Finish, does nothing.
	Abort()
}
