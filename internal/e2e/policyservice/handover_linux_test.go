package policyservice

import (
	"strings"
	"sync/atomic"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestHandover hands the gate over while Postfix asks. No message of a listed sender passes,
// although Postfix would let it pass without an answer.
func TestHandover(t *testing.T) {
	t.Parallel()
	const handovers = 2
	addr := harness.FreeAddr(t)
	g := harness.LaunchSuccession(t, gateSetup(addr).Dir(t), nil, nil, harness.Binary(t), "serve")
	g.WaitListening()
	p := startPostfix(t, smtpd, "inet:"+addr, recommended, "smtpd_error_sleep_time = 0", "smtpd_hard_error_limit = 1000000")
	var stop atomic.Bool
	var asked atomic.Int64
	ended := make(chan string, 2)
	for range cap(ended) {
		c := harness.MustDial(t, p.Addr)
		go func() {
			for !stop.Load() {
				reply, err := c.Verdict("a@spam.example", "you@example.org")
				if err != nil || !strings.HasPrefix(reply, "550 5.7.1 ") {
					ended <- reply
					return
				}
				asked.Add(1)
			}
			ended <- ""
		}()
	}
	for i := range handovers {
		g.HandOver()
		g.WaitNth(i+1, "ended")
		before := asked.Load()
		harness.WaitFor(t, "Postfix to ask the successor", func() bool { return asked.Load() > before+10 || len(ended) > 0 })
	}
	stop.Store(true)
	for range cap(ended) {
		if reply := <-ended; reply != "" {
			t.Errorf("after %d questions a listed sender got %q", asked.Load(), reply)
		}
	}
	t.Logf("%d questions during %d handovers", asked.Load(), handovers)
	g.Stop()
	g.WantEnded(handovers + 1)
}
