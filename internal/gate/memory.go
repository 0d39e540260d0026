package gate

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// The garbage collector runs when there is as much garbage as garbageFloor, or as gcPercent
// of the memory in use, whichever is more.
const (
	// gcPercent matters with many clients. With Go's default of 100, each of 10,000 idle
	// clients costs up to 24 KiB; with 35 it is 16 KiB.
	gcPercent = 35

	// garbageFloor, in bytes, matters with few clients, when the filter is nearly all that is
	// in use. A message on a connection of its own makes 20 KiB of garbage. Without the floor
	// there would be a collection every 600 messages.
	garbageFloor = 32 << 20
)

// startTime is after the start and the measuring of the filter, on a machine that is not busy.
const startTime = 5 * time.Second

// boundGarbage sets these bounds, unless the operator has set GOGC. It adapts them to the
// memory in use after each collection. What the start leaves is given back once, since an idle
// gate would collect nothing for hours.
func boundGarbage() {
	time.AfterFunc(startTime, debug.FreeOSMemory)
	if _, set := os.LookupEnv("GOGC"); !set {
		(&collector{percent: 100}).adapt()
	}
}

// collector is an unreachable object, so that its finalizer runs after each collection.
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

// gcPercentFor returns GOGC for a number of bytes in use. It is rounded so that it seldom
// changes: a change stops all goroutines for a moment.
func gcPercentFor(inUse uint64) int {
	const step = 5
	const least = 4 << 20 // Go's minimum heap
	floor := garbageFloor * 100 / max(inUse, least)
	return max(gcPercent, int(floor)/step*step)
}

// inUse returns the bytes that the last collection found in use, stacks included.
func inUse() uint64 {
	s := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}
