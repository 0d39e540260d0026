package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestAdminHandover hands a gate over: socket and metrics are the successor's, at
// no time is there none, and no match is forgotten.
func TestAdminHandover(t *testing.T) {
	t.Parallel()
	day := today()
	g := startReaped(t, setup{more: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"}, binary(t))
	url := "http://" + g.waitRecord("metrics").string("addr") + "/metrics"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	waitVerdict(t, g.addr, "x@spam.example", "550")
	notPast(t, day)
	before := g.status(t, "blocked")

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // asks all the while
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := os.Lstat(g.socketPath()); err != nil {
				t.Error(err)
				return
			}
			began := time.Now()
			response, err := client.Get(url)
			if err == nil {
				response.Body.Close()
			} else if time.Since(began) < grace {
				t.Error(err)
				return
			}
		}
	}()
	g.handOver()
	after := g.status(t, "blocked")
	if after.PID == before.PID || after.From != "gate" {
		t.Errorf("process %d answers, before it was %d", after.PID, before.PID)
	}
	g.waitNth(1, "ended")
	close(stop)
	<-stopped

	last := g.status(t, "blocked")
	if last.PID != after.PID {
		t.Errorf("once the old process has ended: %+v", last)
	}
	if n := value(t, metrics(t, client, url), "spamgate_list_hits_total", "list", "blocked"); n != 0 {
		t.Errorf("the new process counts %v matches of its own", n)
	}
	if text := g.lists(t, 0, "unused", "--since", day); !strings.Contains(text, "0 of 1") {
		t.Errorf("unused: %q", text)
	}
	g.stop()
	if _, err := os.Lstat(g.socketPath()); err == nil {
		t.Error("the socket is still there")
	}
	notPast(t, day)
	if last.Lists[0].HitsToday == nil || *last.Lists[0].HitsToday != 1 {
		t.Errorf("hits today: %+v", last)
	}
}

// TestAdminHandoverFails has a successor fail: the gate goes on answering.
func TestAdminHandoverFails(t *testing.T) {
	t.Parallel()
	g := startReaped(t, setup{}, binary(t))
	before := g.status(t, "blocked")
	if err := os.Remove(g.socketPath()); err != nil { // as one that took it and failed would
		t.Fatal(err)
	}
	writeFile(t, g.dir+"/config.toml", "nonsense = true\n")
	g.signal(12) // SIGUSR2
	g.waitRecord("not handed over, this process goes on")
	writeFile(t, g.dir+"/config.toml", setup{}.config())
	if s := g.status(t, "blocked"); s.PID != before.PID {
		t.Errorf("status %+v", s)
	}
}
