package smtpfilter

// Meter counts connections and messages. Its methods must be safe for concurrent use, and
// fast: every message waits for them. They receive the Listener's name.
type Meter interface {
	// Connected and Disconnected are called once for each connection.
	Connected(listener string)
	Disconnected(listener string)

	// Message is called once for each message that a client has begun to send, and
	// for each that has failed at a recipient, when the client receives the reply.
	Message(listener string, outcome Outcome)
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

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Connected(string)        {}
func (noMeter) Disconnected(string)     {}
func (noMeter) Message(string, Outcome) {}
