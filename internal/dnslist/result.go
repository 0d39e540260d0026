package dnslist

import (
	"fmt"
	"net/netip"

	"spamgate/internal/resolver"
)

// Outcome is what a list says of a domain.
type Outcome uint8

// The outcomes.
const (
	// NotListed: the list has neither the domain nor one of its parents that was asked.
	NotListed Outcome = iota
	Listed
	Unknown // no answer that can be relied on; Result.Cause says why
)

var outcomeNames = [...]string{"not listed", "listed", "unknown"}

// String returns the outcome's name: "not listed".
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Cause says why a result is Unknown. Its text is a label of metrics.
type Cause string

// The causes.
const (
	// CauseTimeout: no answer within the time that the message or the question has.
	CauseTimeout = Cause(resolver.Timeout)
	// CauseServfail: the resolver says that it cannot get an answer, or gives one that
	// is not an answer to the question.
	CauseServfail = Cause(resolver.Servfail)
	// CauseNetwork: the resolvers cannot be reached.
	CauseNetwork = Cause(resolver.Network)
	// CauseRefused: the list refuses our questions with an address in 127.255.255.0/24.
	CauseRefused Cause = "refused"
	// CauseForeign: an address outside 127.0.0.0/8. Resolvers that invent answers, and
	// new owners of the zone's domain, give such addresses.
	CauseForeign Cause = "foreign"
	// CauseBusy: too many questions are under way.
	CauseBusy = Cause(resolver.Busy)
	// CauseBroken: the list failed so often that it is not asked at the moment.
	CauseBroken Cause = "broken"
	// CauseOff: the list is switched off, because it does not pass its check.
	CauseOff Cause = "off"
	// CauseLimit: the message has more than MaxNames names.
	CauseLimit Cause = "limit"
	// CauseName: an address literal, or a name that DNS cannot carry.
	CauseName Cause = "name"
	// CauseGuess: the sender's address may be a wrong guess, see Message.Skipped.
	CauseGuess Cause = "guess"
	// CauseStopped: the caller's context has ended, or the Client was closed.
	CauseStopped = Cause(resolver.Stopped)
)

// Causes are all causes, in a fixed order.
var Causes = [...]Cause{
	CauseTimeout, CauseServfail, CauseNetwork, CauseRefused, CauseForeign, CauseBusy,
	CauseBroken, CauseOff, CauseLimit, CauseName, CauseGuess, CauseStopped,
}

// Temporary reports whether the same question may get an answer soon. If the list is
// switched off, or the question is one that is never asked, it does not: a message that
// waits for it would wait forever.
func (c Cause) Temporary() bool {
	switch c {
	case CauseOff, CauseLimit, CauseName, CauseGuess:
		return false
	}
	return true
}

// Result is what a list says of a domain.
type Result struct {
	Outcome Outcome

	// Name is the listed name: the domain that was asked, or the most specific of its
	// parents that is listed. Codes are the addresses that count, in order. Both are
	// empty unless the Outcome is Listed. Callers may not change Codes.
	Name  string
	Codes []netip.Addr

	// Reason is the list's own text (TXT), in printable ASCII and at most MaxReason
	// bytes. It is empty if the list has none, or did not send it in time.
	Reason string

	// Cause is set if the Outcome is Unknown.
	Cause Cause

	// Defer says that the mail is to be deferred: the Outcome is Unknown, the list has
	// Defer set, and the cause is temporary.
	Defer bool
}
