package smtpfilter

import "spamgate/smtpfilter/limit"

// Meter counts connections, messages and recipients. Its methods must be safe for concurrent
// use, and fast: every message waits for them. They receive the Listener's name.
type Meter interface {
	// Connected and Disconnected are called once for each connection.
	Connected(listener string)
	Disconnected(listener string)

	// Message is called once for each message that a client has begun to send, and
	// for each that has failed at a recipient, when the client receives the reply.
	Message(listener string, outcome Outcome)

	// Recipient is called once for each valid RCPT.
	Recipient(listener string, outcome RecipientOutcome)

	// Limited is called for each command or connection that a limit refuses.
	Limited(listener string, reached limit.Result)

	// Auth is called once for each AUTH that was passed on to the next hop.
	Auth(listener string, outcome AuthOutcome)
}

// Outcome is the outcome of a message.
type Outcome uint8

// The outcomes.
const (
	OutcomeAccepted  Outcome = iota // by the next hop
	OutcomeDiscarded                // accepted and dropped by the gate
	OutcomeListed                   // refused because of a sender in its header
	OutcomeRefused                  // refused because of its bytes or size
	OutcomeNextHop                  // refused by the next hop
	OutcomeFailed                   // could not be judged or passed on
	OutcomeUnknown                  // passed on, and the next hop's reply was lost
	OutcomeAbandoned                // the client has not sent all of it
	OutcomePartial                  // some recipients have it, and the client has to send it again for the others
	numberOfOutcomes                //
)

var outcomeNames = [...]string{"accepted", "discarded", "listed", "refused", "refused_by_next_hop", "failed", "unknown", "abandoned", "partial"}

// String returns the outcome's name, as in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	var all []Outcome
	for o := range numberOfOutcomes {
		all = append(all, o)
	}
	return all
}

// RecipientOutcome is the outcome of a RCPT.
type RecipientOutcome uint8

// The outcomes.
const (
	RecipientAccepted         RecipientOutcome = iota // by the next hop
	RecipientDiscarded                                // accepted, and the gate will drop the message
	RecipientListed                                   // refused because of the envelope's sender
	RecipientRelayDenied                              // not in Policy.RecipientDomains
	RecipientUnknown                                  // not in Policy.ValidRecipients
	RecipientLimited                                  // too many, of the message or of the client
	RecipientPostponed                                // others of the message go first, see Settings.Memory
	RecipientNextHop                                  // refused by the next hop
	RecipientFailed                                   // the lists or the next hop could not be asked
	numberOfRecipientOutcomes                         //
)

var recipientNames = [...]string{"accepted", "discarded", "listed", "relay_denied", "unknown", "limited", "postponed", "refused_by_next_hop", "failed"}

// String returns the outcome's name, as in metrics.
func (o RecipientOutcome) String() string { return recipientNames[o] }

// RecipientOutcomes returns all outcomes of recipients.
func RecipientOutcomes() []RecipientOutcome {
	var all []RecipientOutcome
	for o := range numberOfRecipientOutcomes {
		all = append(all, o)
	}
	return all
}

// AuthOutcome is the outcome of an AUTH.
type AuthOutcome uint8

// The outcomes.
const (
	AuthAuthenticated    AuthOutcome = iota // the next hop has accepted the login
	AuthRefused                             // the next hop has refused it for good: a wrong password, mostly
	AuthUnavailable                         // the next hop could not be asked, or could not check the login now
	AuthAbandoned                           // the client broke off, or made no sense
	numberOfAuthOutcomes                    //
)

var authNames = [...]string{"authenticated", "refused", "unavailable", "abandoned"}

// String returns the outcome's name, as in metrics.
func (o AuthOutcome) String() string { return authNames[o] }

// AuthOutcomes returns all outcomes of logins.
func AuthOutcomes() []AuthOutcome {
	var all []AuthOutcome
	for o := range numberOfAuthOutcomes {
		all = append(all, o)
	}
	return all
}

// NoMeter counts nothing.
type NoMeter struct{}

func (NoMeter) Connected(string)        {}
func (NoMeter) Disconnected(string)     {}
func (NoMeter) Message(string, Outcome) {}

func (NoMeter) Recipient(string, RecipientOutcome) {}
func (NoMeter) Limited(string, limit.Result)       {}
func (NoMeter) Auth(string, AuthOutcome)           {}
