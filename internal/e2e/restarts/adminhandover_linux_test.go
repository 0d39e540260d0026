package restarts

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestAdminHandover hands a gate over. The successor takes over socket and metrics
// without a gap, and no match is forgotten.
func TestAdminHandover(t *testing.T) {
	t.Parallel()
	day := harness.Today()
	g := startSuccession(t, harness.Setup{Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"}, harness.Binary(t))
	url := "http://" + g.WaitRecord("metrics").Text("addr") + "/metrics"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	harness.WaitVerdict(t, g.Addr, "x@spam.example", "550")
	harness.SkipAfter(t, day)
	before := g.Status(t, "blocked")

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ask all the time
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := os.Lstat(g.SocketPath()); err != nil {
				t.Error(err)
				return
			}
			began := time.Now()
			response, err := client.Get(url)
			if err == nil {
				response.Body.Close()
			} else if time.Since(began) < harness.HandoverGrace {
				t.Error(err)
				return
			}
		}
	}()
	g.HandOver()
	after := g.Status(t, "blocked")
	if after.PID == before.PID || after.From != "gate" {
		t.Errorf("process %d answers, before it was %d", after.PID, before.PID)
	}
	g.WaitNth(1, "ended")
	close(stop)
	<-stopped

	last := g.Status(t, "blocked")
	if last.PID != after.PID {
		t.Errorf("once the old process has ended: %+v", last)
	}
	if n := harness.MetricValue(t, harness.ReadMetrics(t, client, url), "spamgate_list_hits_total", "list", "blocked"); n != 0 {
		t.Errorf("the new process counts %v matches of its own", n)
	}
	if text := g.Lists(t, 0, "unused", "--since", day); !strings.Contains(text, "0 of 1") {
		t.Errorf("unused: %q", text)
	}
	g.Stop()
	if _, err := os.Lstat(g.SocketPath()); err == nil {
		t.Error("the socket is still there")
	}
	harness.SkipAfter(t, day)
	if last.Lists[0].HitsToday == nil || *last.Lists[0].HitsToday != 1 {
		t.Errorf("hits today: %+v", last)
	}
}

// TestAdminHandoverFails has a successor fail. The gate's socket still answers.
func TestAdminHandoverFails(t *testing.T) {
	t.Parallel()
	g := startSuccession(t, harness.Setup{}, harness.Binary(t))
	before := g.Status(t, "blocked")
	if err := os.Remove(g.SocketPath()); err != nil { // as a successor that took it over and failed would
		t.Fatal(err)
	}
	harness.WriteFile(t, g.Dir+"/config.toml", "nonsense = true\n")
	g.Signal(12) // SIGUSR2
	g.WaitRecord("not handed over, this process goes on")
	harness.WriteFile(t, g.Dir+"/config.toml", harness.Setup{}.Config())
	if s := g.Status(t, "blocked"); s.PID != before.PID {
		t.Errorf("status %+v", s)
	}
}
