package smtpfilter_test

import (
	"math"
	"runtime/metrics"
	"strings"
	"testing"
)

// TestHandovers counts how often a goroutine is given a processor for a message: each time
// costs about a microsecond, and often a system call. The gate's goroutine that waits for
// a command is one. So are the client's, which waits for the reply in the same process,
// and the sink's.
func TestHandovers(t *testing.T) {
	const rounds, messages = 20, 100
	message := "From: <a@clean.example>\r\nSubject: hand-overs\r\n\r\n" + strings.Repeat("A line.\r\n", 400) + ".\r\n"
	send := func(c *benchClient) {
		c.exchange("MAIL FROM:<a@clean.example>\r\n", 1)
		c.exchange("RCPT TO:<b@example.net>\r\n", 1)
		c.exchange("DATA\r\n", 1)
		c.exchange(message, 1)
	}
	addr := benchGate(t)
	kept := dialBench(t, addr)
	defer kept.conn.Close()
	for _, tt := range []struct {
		name  string
		limit float64
		send  func()
	}{
		// Four commands of the client and three flights to the sink, each with two ends
		// that wait.
		{"a connection kept", 2 * (4 + 3), func() { send(kept) }},
		// Greeting, EHLO and QUIT, and four goroutines that begin, or wait for connections
		// and their ends.
		{"a connection each", 2*(7+3) + 4, func() {
			c := dialBench(t, addr)
			send(c)
			c.exchange("QUIT\r\n", 1)
			c.conn.Close()
		}},
	} {
		tt.send()           // what the first one causes is not counted
		each := math.Inf(1) // of the best round: the collection of garbage adds some
		for range rounds {
			before := handovers()
			for range messages {
				tt.send()
			}
			each = min(each, (handovers()-before)/messages)
		}
		t.Logf("%s: %.1f hand-overs a message", tt.name, each)
		const noise = 1.5
		if each > tt.limit+noise || each < 1 {
			t.Errorf("%s: %.1f hand-overs a message, want at most %.0f", tt.name, each, tt.limit)
		}
	}
}

// handovers returns how often a goroutine was given a processor. The runtime samples every
// eighth time.
func handovers() float64 {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	sum := uint64(0)
	for _, n := range s[0].Value.Float64Histogram().Counts {
		sum += n
	}
	return float64(8 * sum)
}
