package gate

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

// Garbage is collected once it is as much as garbageFloor or as gcPercent of what is
// in use, whichever is more.
const (
	// gcPercent is for a gate with many clients. With Go's own 100, garbage may take as
	// much again as what is in use, and each of 10,000 idle clients costs up to 24 KiB;
	// with 35 it is 16 KiB.
	gcPercent = 35

	// garbageFloor, in bytes, is for one with few, in which the filter is nearly all that
	// is in use: a message on a connection of its own makes 20 KiB of garbage, so that
	// without it there were a collection every 600 messages.
	garbageFloor = 32 << 20
)

// boundGarbage has garbage collected by these bounds, unless the operator has set GOGC.
// What is in use is looked at after each collection.
func boundGarbage() {
	if _, set := os.LookupEnv("GOGC"); !set {
		(&collector{percent: 100}).adapt()
	}
}

// collector is an object that nobody uses, so that its finalizer runs after each
// collection.
type collector struct {
	percent int
	_       [16]byte // the finalizer of a tiny object may never run: see runtime.SetFinalizer
}

func (c *collector) adapt() {
	if p := gcPercentFor(inUse()); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
	runtime.SetFinalizer(c, (*collector).adapt)
}

// gcPercentFor returns how much may be added, in percent, to that many bytes in use. It
// is rounded so that it seldom changes: to change it stops all goroutines for a moment.
func gcPercentFor(inUse uint64) int {
	const step = 5
	const least = 4 << 20 // what Go takes for in use at least
	floor := garbageFloor * 100 / max(inUse, least)
	return max(gcPercent, int(floor)/step*step)
}

// inUse returns what the last collection has found in use: the heap, and the stacks,
// which count where a share of it all may be garbage.
func inUse() uint64 {
	s := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}
