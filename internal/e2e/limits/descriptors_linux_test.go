package limits

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// descriptorLimit is how many descriptors the gate may have open.
const descriptorLimit = 64

// maxCPUShare is the share of a core that the gate may use.
const maxCPUShare = 0.2

// startStarved starts a gate that may have few descriptors open.
func startStarved(t testing.TB, s harness.Setup) *harness.Gate {
	t.Helper()
	dir := s.Dir(t)
	g := harness.Launch(t, dir, exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" serve`, descriptorLimit), harness.Binary(t)))
	g.Addr = g.WaitListening()
	return g
}

// TestNoDescriptors has more clients connect than the gate has descriptors for. Those
// who are connected get a reply to everything, a list and a configuration that cannot be
// opened change nothing, and when the clients go, the gate serves as before.
func TestNoDescriptors(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := harness.Setup{NextHop: "smtp://" + sink.Addr(), NoReuse: true, Keys: map[string]string{"next_hop": noNames, "listen": "max_connections = 0"}, Tables: "[watch]\npoll_interval = \"1s\"\n"}
	g := startStarved(t, s)
	taken := map[string]bool{"m0": true}
	harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m0"))

	const clients = 200
	var crowd []*harness.Client
	for range clients {
		crowd = append(crowd, connectFrom(t, g.Addr, flooder))
	}
	failed := g.WaitRecord("cannot take a client now, trying again")
	if text := failed.Text("error"); !strings.Contains(text, "too many open files") {
		t.Errorf("the log says %q", text)
	}
	pid := g.Process.Pid
	// A descriptor that the gate closes goes to the next client in the queue within a
	// second. Descriptors above the limit were inherited.
	full := func() {
		t.Helper()
		harness.WaitFor(t, "all descriptors to be in use", func() bool {
			for fd := range descriptorLimit {
				if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil {
					return false
				}
			}
			return true
		})
	}
	full()

	// The first clients are connected, but there is no descriptor for the next hop.
	greeted := crowd[0]
	greeted.WantReply(t, "220 ")
	greeted.Want(t, "EHLO client.example", "250")
	for i := range 5 {
		id := fmt.Sprintf("m%d", i+1)
		reply, err := greeted.Send("a@example.com", "b@example.net", []byte(harness.SmallMessage("a@example.com", id)))
		switch {
		case err == nil && strings.HasPrefix(reply, "250 "):
			taken[id] = true
		case err != nil || !strings.HasPrefix(reply, "451 4.4.1 "):
			t.Errorf("without descriptors a message is answered with %q, %v", reply, err)
		}
		greeted.Want(t, "RSET", "250")
	}
	wantVerdict(t, greeted, "x@spam.example", "550 ")
	full()
	harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), "spam.example\nlater.example\n")
	g.WaitRecord("list held, its last good version serves", "list", "blocked")
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reload failed, nothing has changed")
	wantVerdict(t, greeted, "x@spam.example", "550 ")

	g.WaitRecord("filter measured") // in the background, since the start
	before, since := harness.CPUTime(t, pid), time.Now()
	time.Sleep(3 * time.Second) // the time that is measured
	used, wall := harness.CPUTime(t, pid)-before, time.Since(since)
	if n := harness.Descriptors(t, pid); n < descriptorLimit {
		t.Errorf("%d descriptors are open, the test is about all %d", n, descriptorLimit)
	}
	if used > time.Duration(maxCPUShare*float64(wall)) {
		t.Errorf("without descriptors it uses %v of processor time in %v", used, wall)
	}

	for _, c := range crowd {
		c.Close()
	}
	since = time.Now()
	// It ought to serve within 5 s, but a busy machine may be slower. While some of the crowd
	// are still connected, there may be no descriptor for the next hop.
	harness.WaitFor(t, "the gate to serve again", func() bool {
		c := harness.MustDialFrom(t, g.Addr, bystander)
		defer c.Close()
		reply := c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m100"))
		if !strings.HasPrefix(reply, "250 ") && !strings.HasPrefix(reply, "451 4.4.1 ") {
			t.Fatalf("the bystander's message is answered with %q", reply)
		}
		return reply[0] == '2'
	})
	taken["m100"] = true
	served := time.Since(since)
	harness.WaitVerdict(t, g.Addr, "x@later.example", "550")
	g.WaitRecord("list is good again", "list", "blocked")
	harness.WaitFor(t, "the crowd to be gone", func() bool { return harness.Descriptors(t, pid) < descriptorLimit/2 })
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	harness.WantOnce(t, sink, taken)
	t.Logf("%d clients, %d descriptors: %v of processor time in %v; serving again after %v; %d lines of the log say why",
		clients, descriptorLimit, used, wall.Round(time.Millisecond), served.Round(time.Millisecond), len(g.Records("cannot take a client now, trying again")))
}

func wantVerdict(t testing.TB, c *harness.Client, from, prefix string) {
	t.Helper()
	if reply, err := c.Verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, prefix) {
		t.Errorf("%s gets %q, %v; want %q", from, reply, err, prefix)
	}
}
