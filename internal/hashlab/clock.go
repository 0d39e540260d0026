package hashlab

import (
	"math"
	"time"
)

const (
	// chainSteps is how many operations clockChain does in a turn.
	chainSteps = 32

	// chainTurns make a chain of some 0.2 ms: long beside reading the clock,
	// short enough to get through between two interruptions.
	chainTurns = 20_000
)

// clockChain computes a chain of turns·32 additions and exclusive ors by turns,
// each of which needs the result of the one before. Both take one cycle on every
// processor of today's amd64 and arm64, and no compiler can shorten a chain of
// both: a and b come from outside. The count of turns runs beside it.
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

// stopwatch finds the processor's clock: it times the chain again and again and
// keeps the shortest time, that of the chain that nothing interrupted.
type stopwatch struct {
	least time.Duration
	sink  uint64 // what the chains computed, so that they are needed
}

func newStopwatch() *stopwatch { return &stopwatch{least: math.MaxInt64} }

// time times the chain once.
func (s *stopwatch) time() {
	begin := time.Now()
	s.sink = clockChain(chainTurns, s.sink, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
	s.least = min(s.least, time.Since(begin))
}

// gigahertz is the clock by the shortest chain so far: cycles a nanosecond.
func (s *stopwatch) gigahertz() float64 {
	return float64(chainTurns*chainSteps) / float64(max(1, s.least.Nanoseconds()))
}
