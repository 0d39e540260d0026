package smtpfilter

import (
	"context"
	"io"

	"spamgate/blocklist/verdict"
)

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
