package nexthop

import (
	"context"
	"errors"
	"time"
)

// Meter counts failures of next hops, and how long they take. Its methods must be safe
// for concurrent use, and fast: mail waits for them. They receive the Target's name.
// Probes are not counted.
type Meter interface {
	// Failed is called for each failure that ends a transaction or a login. A
	// refusal (4xx, 5xx) is no failure, except of a connection.
	Failed(nextHop string, step Step)

	// Took is called with the duration of a step that has not failed: StepConnect
	// up to the reply to EHLO, StepMail for MAIL and the first recipient, and
	// StepReply for the reply to a message.
	Took(nextHop string, step Step, d time.Duration)
}

// Step is a part of a delivery.
type Step uint8

// The steps.
const (
	StepConnect  Step = iota // the connection
	StepTLS                  // TLS handshake, STARTTLS
	StepGreeting             // greeting and EHLO, also if the server has no room
	StepIdentity             // XCLIENT and PROXY header, if the server refuses the client or lacks them
	StepLoop                 // the next hop leads back to the gate
	StepLogin                // AUTH, and the connection of a client that has logged in
	StepMail                 // MAIL and RCPT
	StepData                 // DATA
	StepMessage              // the message before its end
	StepReply                // the reply to the message is lost
	StepStore                // a Maildir's file
	StepSession              // any command, if the server refuses the gate's own session
	numberOfSteps
)

var stepNames = [...]string{"connect", "tls", "greeting", "identity", "loop", "login", "mail", "data", "message", "reply", "store", "session"}

// String returns the step's name, as in metrics.
func (s Step) String() string { return stepNames[s] }

// Steps returns all steps.
func Steps() []Step {
	var all []Step
	for s := range numberOfSteps {
		all = append(all, s)
	}
	return all
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Failed(string, Step)              {}
func (noMeter) Took(string, Step, time.Duration) {}

// stepError is an error that knows its step. The outermost one of a chain counts: a
// command may fail because the server did not take another connection.
type stepError struct {
	error
	step Step
}

func (e *stepError) Unwrap() error { return e.error }

// inStep returns err with its step; nil stays nil.
func inStep(step Step, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{err, step}
}

// stepOf returns the step of an error, which is the given one if the error does not tell.
func stepOf(err error, step Step) Step {
	var known *stepError
	switch {
	case errors.Is(err, ErrSession):
		return StepSession
	case isAny(err, []error{errXCLIENT, ErrNoXCLIENT, errProxied}):
		return StepIdentity
	case errors.Is(err, ErrLoop):
		return StepLoop
	case errors.Is(err, ErrReplyLost):
		return StepReply
	case errors.Is(err, errLoggedOut):
		return StepLogin
	case errors.As(err, &known):
		return known.step
	}
	return step
}

// noteFailed counts the failure of a transaction or a login. If the gate ended it, or the
// message needs what the next hop does not offer, the next hop has not failed.
func (s *server) noteFailed(err error, step Step) {
	if errors.Is(err, ErrSession) {
		s.noteSession(err)
	}
	if !isAny(err, []error{ErrAborted, ErrClosed, ErrNotOffered, ErrRequireTLS, context.Canceled}) {
		s.config.Meter.Failed(s.name, stepOf(err, step))
	}
}
