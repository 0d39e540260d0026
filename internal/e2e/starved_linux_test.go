package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// fewDescriptors is what the starved gate may have open.
const fewDescriptors = 64

// starvedShare is how much of a core the starved gate may use.
const starvedShare = 0.2

// startStarved starts a gate that may have few descriptors open.
func startStarved(t testing.TB, s setup) *gate {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	g := launch(t, dir, exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" serve`, fewDescriptors), binary(t)))
	g.addr = g.waitListening()
	return g
}

// TestNoDescriptors has more clients come than the gate has descriptors for.
// Those who are in get an answer to everything, a list and a configuration that
// can't be opened change nothing, and when the clients go all is well again.
func TestNoDescriptors(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := setup{nextHop: "smtp://" + sink.Addr(), noReuse: true, keys: map[string]string{"next_hop": noNames, "listen": "max_connections = 0"}, more: "[watch]\npoll_interval = \"1s\"\n"}
	g := startStarved(t, s)
	taken := map[string]bool{"m0": true}
	mustDial(t, g.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m0"))

	const clients = 200
	var crowd []*client
	for range clients {
		crowd = append(crowd, connectFrom(t, g.addr, flooder))
	}
	failed := g.waitRecord("cannot take a client now, trying again")
	if text := failed.string("error"); !strings.Contains(text, "too many open files") {
		t.Errorf("the log says %q", text)
	}
	pid := g.process.Pid
	// What the gate gives back, of the first message for instance, goes to the next
	// in the queue within a second. Descriptors above the limit were inherited.
	full := func() {
		t.Helper()
		await(t, "all descriptors to be in use", func() bool {
			for fd := range fewDescriptors {
				if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil {
					return false
				}
			}
			return true
		})
	}
	full()

	// The first in the queue are in. There is no descriptor to reach the next hop.
	greeted := crowd[0]
	greeted.wantReply(t, "220 ")
	greeted.want(t, "EHLO client.example", "250")
	for i := range 5 {
		id := fmt.Sprintf("m%d", i+1)
		reply, err := greeted.send("a@example.com", "b@example.net", []byte(letter("a@example.com", id)))
		switch {
		case err == nil && strings.HasPrefix(reply, "250 "):
			taken[id] = true
		case err != nil || !strings.HasPrefix(reply, "451 4.4.1 "):
			t.Errorf("without descriptors a message is answered with %q, %v", reply, err)
		}
		greeted.want(t, "RSET", "250")
	}
	wantVerdict(t, greeted, "x@spam.example", "550 ")
	full()
	writeFile(t, filepath.Join(g.dir, "blocked.txt"), "spam.example\nlater.example\n")
	g.waitRecord("list held, its last good version serves", "list", "blocked")
	g.signal(syscall.SIGHUP)
	g.waitRecord("reload failed, nothing has changed")
	wantVerdict(t, greeted, "x@spam.example", "550 ")

	before, since := processorTime(t, pid), time.Now()
	time.Sleep(3 * time.Second) // what is measured, not what is waited for
	used, wall := processorTime(t, pid)-before, time.Since(since)
	if n := descriptors(t, pid); n < fewDescriptors {
		t.Errorf("%d descriptors are open, the test is about all %d", n, fewDescriptors)
	}
	if used > time.Duration(starvedShare*float64(wall)) {
		t.Errorf("without descriptors it uses %v of processor time in %v", used, wall)
	}

	for _, c := range crowd {
		c.Close()
	}
	since = time.Now()
	// It ought to serve within 5 s, which a busy machine may not keep. Who comes before
	// all of the crowd is gone may find no descriptor left to reach the next hop.
	pollFor(t, "the gate to serve again", func() bool {
		c := mustDialFrom(t, g.addr, bystander)
		defer c.Close()
		reply := c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m100"))
		if !strings.HasPrefix(reply, "250 ") && !strings.HasPrefix(reply, "451 4.4.1 ") {
			t.Fatalf("the bystander's message is answered with %q", reply)
		}
		return reply[0] == '2'
	})
	taken["m100"] = true
	served := time.Since(since)
	waitVerdict(t, g.addr, "x@later.example", "550")
	g.waitRecord("list is good again", "list", "blocked")
	await(t, "the crowd to be gone", func() bool { return descriptors(t, pid) < fewDescriptors/2 })
	g.signal(syscall.SIGHUP)
	g.waitRecord("reloaded")
	wantOnce(t, sink, taken)
	t.Logf("%d clients, %d descriptors: %v of processor time in %v; serving again after %v; %d lines of the log say why",
		clients, fewDescriptors, used, wall.Round(time.Millisecond), served.Round(time.Millisecond), len(g.records("cannot take a client now, trying again")))
}

func wantVerdict(t testing.TB, c *client, from, prefix string) {
	t.Helper()
	if reply, err := c.verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, prefix) {
		t.Errorf("%s gets %q, %v; want %q", from, reply, err, prefix)
	}
}
