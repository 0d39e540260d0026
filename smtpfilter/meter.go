package smtpfilter

// Meter counts what happens. Its methods are called by many goroutines at once and
// on every message's way, so they must be fast. The listener is the port's name.
type Meter interface {
	// Connected and Disconnected are called once for each connection.
	Connected(listener string)
	Disconnected(listener string)

	// Message is called once for each message that a client has begun to send, when
	// it is answered, and for each that has failed at a recipient, when that is
	// answered.
	Message(listener string, outcome Outcome)
}

// Outcome is what became of a message.
type Outcome uint8

// The outcomes.
const (
	OutcomeAccepted  Outcome = iota // the next hop has taken it
	OutcomeDiscarded                // we have taken and dropped it
	OutcomeListed                   // refused because of a sender in its header
	OutcomeRefused                  // refused because of how it came: its bytes, its size
	OutcomeNextHop                  // the next hop has refused it
	OutcomeFailed                   // it could not be judged or handed on
	OutcomeUnknown                  // handed on, and the next hop's answer was lost
	OutcomeAbandoned                // its client has not sent all of it
	OutcomePartial                  // some recipients have it, and its client is to send it again for the others
	numberOfOutcomes                //
)

var outcomeNames = [...]string{"accepted", "discarded", "listed", "refused", "refused_by_next_hop", "failed", "unknown", "abandoned", "partial"}

// String is the outcome's name, as in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes are all there are.
func Outcomes() []Outcome {
	all := make([]Outcome, numberOfOutcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Connected(string)        {}
func (noMeter) Disconnected(string)     {}
func (noMeter) Message(string, Outcome) {}
