package harness

import (
	"testing"
	"time"
)

// Tests wait for a reply for at most ReplyTimeout, and for work such as a start or a
// list going live for at most WorkTimeout. Both are long, because the gate may run with
// the race detector on a busy machine: a test reaches them only if something hangs.
const (
	ReplyTimeout = 30 * time.Second
	WorkTimeout  = 2 * time.Minute
)

// WaitFor calls done every 10 milliseconds until it returns true, for a state that no
// event announces. The test fails after WorkTimeout.
func WaitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(WorkTimeout); !done(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("waited %v for %s", WorkTimeout, what)
		}
	}
}
