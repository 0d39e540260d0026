package fleet

import (
	"fmt"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestProofRestarts kills the servers one after the other and starts them again, many times: the
// gates connect again each time, leave no consumers and no goroutines behind, and no list goes
// back.
func TestProofRestarts(t *testing.T) {
	t.Parallel()
	c := startBrokers(t, harness.IfFull(1, 3))
	gates := startFleet(t, same(3, c.urls())...)
	c.settle(gates...)
	consumers := 2 * len(gates) // of the lists and of the shared values
	harness.WaitFor(t, "all gates watch", func() bool { return c.consumers() == consumers })
	goroutines := goroutinesOf(t, gates)
	stop := watch(t, gates...)
	n := count(t, "SPAMGATE_FLEET_RESTARTS", 2, 100)
	var edits, all []time.Duration
	for i := range n {
		b := c.brokers[i%len(c.brokers)]
		b.Kill()
		b.Start()
		began := time.Now()
		g := gates[i%len(gates)]
		entry := ""
		harness.WaitFor(t, "an edit after the restart", func() bool {
			entry = fmt.Sprintf("restart-%d-%d.example", i, time.Since(began).Milliseconds())
			return g.edit("add", entry) == nil
		})
		edits = append(edits, time.Since(began))
		all = append(all, refusedBy(t, time.Now(), "a@"+entry, gates))
	}
	t.Logf("%d restarts: an edit is made after %s; all gates refuse after that: %s", n, quantiles(edits), quantiles(all))
	c.settle(gates...)
	stop()
	harness.WaitFor(t, fmt.Sprintf("there are %d consumers again", consumers), func() bool { return c.consumers() == consumers })
	for i, g := range gates {
		harness.WaitFor(t, fmt.Sprintf("%s has about %v goroutines again", g.name, goroutines[i]), func() bool { return goroutinesOf(t, gates)[i] <= goroutines[i]+3 })
	}
	t.Logf("consumers: %d before and after; goroutines of the gates: %v before, %v after", consumers, goroutines, goroutinesOf(t, gates))
}

// goroutinesOf returns how many goroutines gates have.
func goroutinesOf(t testing.TB, gates []*member) (all []float64) {
	t.Helper()
	for _, g := range gates {
		families := harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics")
		all = append(all, harness.MetricValue(t, families, "go_goroutines"))
	}
	return all
}
