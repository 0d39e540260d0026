package rhsbl

import "sync/atomic"

// Outcome is what became of a question.
type Outcome uint8

// The outcomes.
const (
	Listed    Outcome = iota // a listed name
	NotListed                // every other name of the zones
	Refused                  // not for this client, or not of the zones
	Invalid                  // FORMERR, NOTIMP or BADVERS
	Failed                   // SERVFAIL: the lists could not be asked
	Truncated                // over the rate limit: the client should ask over TCP
	Dropped                  // over the rate limit: no answer
	numOutcomes
)

var outcomeNames = [numOutcomes]string{"listed", "not_listed", "refused", "invalid", "failed", "truncated", "dropped"}

// String returns the outcome's name: "not_listed".
func (o Outcome) String() string { return outcomeNames[o] }

// counts are the questions by outcome.
type counts [numOutcomes]atomic.Uint64

func (c *counts) add(o Outcome) { c[o].Add(1) }

// Counts calls fn with each outcome, and how many questions had it.
func (s *Server) Counts(fn func(o Outcome, n uint64)) {
	for o := range s.counts {
		fn(Outcome(o), s.counts[o].Load())
	}
}
