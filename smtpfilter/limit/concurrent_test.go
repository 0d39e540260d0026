package limit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrent wants no more than is allowed from many goroutines, and empty counts
// afterwards.
func TestConcurrent(t *testing.T) {
	const limit, all = 3, 10
	l := New(Config{
		Client:         Limits{Connections: limit, MessagesPerMinute: 50},
		Network:        Limits{Connections: 2 * limit, MessagesPerMinute: 1000},
		MaxConnections: all,
		MaxEntries:     64,
		Now:            newClock().now,
	})
	var open [4]atomic.Int64
	var total, messages atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				which := (g + i) % len(open)
				a := addr(fmt.Sprintf("192.0.2.%d", which))
				if which == 0 {
					a = addr("2001:db8::1")
				}
				ticket, v := l.Connect(a)
				if v.Allowed() {
					if n := open[which].Add(1); n > limit {
						t.Errorf("%d connections of %v", n, a)
					}
					if n := total.Add(1); n > all {
						t.Errorf("%d connections", n)
					}
					if which == 0 && l.Message(a).Allowed() {
						messages.Add(1)
					}
					if i%100 == 0 {
						l.SetConfig(Config{
							Client:         Limits{Connections: limit, MessagesPerMinute: 50},
							Network:        Limits{Connections: 2 * limit, MessagesPerMinute: 1000},
							MaxConnections: all, MaxEntries: 64 + g,
						})
					}
					total.Add(-1)
					open[which].Add(-1)
					ticket.Release()
				}
			}
		})
	}
	wg.Wait()
	if n := messages.Load(); n != 50 {
		t.Errorf("%d messages in no time, of 50 allowed", n)
	}
	if entries, idle := l.size(t); l.open != 0 || entries != idle {
		t.Errorf("%d open, %d entries, %d idle", l.open, entries, idle)
	}
}
