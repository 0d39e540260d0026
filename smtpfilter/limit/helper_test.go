package limit

import (
	"net/netip"
	"testing"
	"time"
)

// clock is a clock that only advance moves.
type clock struct{ instant time.Time }

func newClock() *clock { return &clock{time.Unix(1_000_000_000, 0)} }

func (c *clock) now() time.Time          { return c.instant }
func (c *clock) advance(d time.Duration) { c.instant = c.instant.Add(d) }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// size returns how many entries the table has, and how many of them are idle. It compares
// the map and the ring.
func (l *Limiter) size(tb testing.TB) (entries, idle int) {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.table
	open := 0
	for k, e := range t.entries {
		if e.key != k {
			tb.Errorf("entry %v under %v", e.key, k)
		}
		if e.open > 0 {
			open++
		}
	}
	for e := t.idle.newer; e != &t.idle; e = e.newer {
		if t.entries[e.key] != e || e.open != 0 || e.newer.older != e {
			tb.Errorf("the list of idle entries holds %+v", e)
		}
		idle++
	}
	if idle != len(t.entries)-open {
		tb.Errorf("%d entries, %d with connections, %d in the list of idle ones", len(t.entries), open, idle)
	}
	return len(t.entries), idle
}
