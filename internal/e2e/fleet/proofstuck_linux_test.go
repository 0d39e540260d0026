package fleet

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestProofStuck stops a gate as a debugger does, for a while: the others go on as before, and it
// catches up.
func TestProofStuck(t *testing.T) {
	t.Parallel()
	c := startBrokers(t, harness.IfFull(1, 3))
	gates := startFleet(t, same(3, c.urls())...)
	stuck, others := gates[2], gates[:2]
	lasts := time.Duration(count(t, "SPAMGATE_FLEET_STUCK", 3, 60)) * time.Second
	load := sendMail(t, others...)
	stuck.Signal(syscall.SIGSTOP)
	defer stuck.Process.Signal(syscall.SIGCONT) // if the test fails before
	var edits, all []time.Duration
	for began := time.Now(); time.Since(began) < lasts; {
		entry := fmt.Sprintf("stuck-%d.example", len(edits))
		edit := time.Now()
		if err := others[len(edits)%2].edit("add", entry); err != nil {
			t.Fatal(err)
		}
		edits = append(edits, time.Since(edit))
		all = append(all, refusedBy(t, time.Now(), "a@"+entry, others))
		time.Sleep(50 * time.Millisecond) // the proof is not about the load
	}
	stuck.Signal(syscall.SIGCONT)
	woken := time.Now()
	waitAlike(t, gates...)
	caught := time.Since(woken)
	c.settle(gates...)
	t.Logf("a gate stuck for %v; on the others an edit takes %s, all refuse after that: %s; it has caught up %v after it goes on; meanwhile %s",
		lasts, quantiles(edits), quantiles(all), caught.Round(time.Millisecond), load.stop())
}
