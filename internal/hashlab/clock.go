package hashlab

import (
	"math"
	"time"
)

const (
	// chainSteps is the number of operations of clockChain in a turn.
	chainSteps = 32

	// chainTurns makes the chain take some 0.2 ms: long compared with reading the
	// clock, and short enough to run between two interruptions.
	chainTurns = 20_000
)

// clockChain computes a chain of turns·32 alternating additions and exclusive ors,
// each of which needs the result of the one before. Both take one cycle on every
// current amd64 and arm64 processor, and no compiler can shorten the chain, since
// it does not know a and b. The processor counts the turns in parallel.
//
//go:noinline
func clockChain(turns int, x, a, b uint64) uint64 {
	for range turns {
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
		x = (x + a) ^ b
	}
	return x
}

// stopwatch measures the processor's clock rate: it times the chain repeatedly and
// keeps the shortest time, which nothing interrupted.
type stopwatch struct {
	least time.Duration
	sink  uint64 // the chains' results, so that the compiler keeps them
}

func newStopwatch() *stopwatch { return &stopwatch{least: math.MaxInt64} }

// time times the chain once.
func (s *stopwatch) time() {
	begin := time.Now()
	s.sink = clockChain(chainTurns, s.sink, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
	s.least = min(s.least, time.Since(begin))
}

// gigahertz returns the clock rate by the shortest time so far, in cycles a
// nanosecond.
func (s *stopwatch) gigahertz() float64 {
	return float64(chainTurns*chainSteps) / float64(max(1, s.least.Nanoseconds()))
}
