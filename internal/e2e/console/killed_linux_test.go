package console

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestKilled kills gates while mail is refused and people look at the history: each row that
// the API has shown is there afterwards, and the next gate goes on with the same history.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 2
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		kills = 50
	}
	setup, url := consoleSetup(t, harness.Setup{})
	dir := setup.Dir(t)
	shown := map[string]bool{}
	var api harness.API
	for k := range kills {
		g := harness.Serve(t, dir)
		if k == 0 {
			api = newSite(g, url).api
		}
		c := harness.MustDial(t, g.Addr)
		for i := range 30 {
			from := fmt.Sprintf("k%d-%d@spam.example", k, i)
			reply, err := c.Verdict(from, ann)
			if err != nil {
				t.Fatal(err)
			}
			id := harness.WantRefusal(t, reply, from, "blocked-file", "unsolicited mail")
			if i%10 == 0 {
				api.WaitRow(t, id)
				shown[id] = true
			}
		}
		g.Ended = true
		g.Signal(syscall.SIGKILL)
		<-g.Exited
	}
	harness.Serve(t, dir)
	for id := range shown {
		api.WaitRow(t, id)
	}
	if len(shown) != 3*kills {
		t.Errorf("%d rows were shown, want %d", len(shown), 3*kills)
	}
}
