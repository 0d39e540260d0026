package nexthops

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// maxLoopDescriptors is how many more descriptors a gate in a loop may have open than at
// rest. A few messages go round before the gates know each other.
const maxLoopDescriptors = 30

// TestGatesInALoop has two gates hand mail to each other, with different names and with
// the same. A recipient must not use up their descriptors, and the client gets a reply
// that names the loop.
func TestGatesInALoop(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"one.example", "two.example"}, {"gate.example", "gate.example"}} {
		for _, reuse := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", names[1], reuse), func(t *testing.T) {
				t.Parallel()
				item, two := harness.FreeAddr(t), harness.FreeAddr(t)
				gates := []*harness.Gate{
					harness.StartGate(t, harness.Setup{Hostname: names[0], Listen: item, NextHop: "smtp://" + two, NoReuse: !reuse}),
					harness.StartGate(t, harness.Setup{Hostname: names[1], Listen: two, NextHop: "smtp://" + item, NoReuse: !reuse}),
				}
				for _, g := range gates {
					before := harness.Descriptors(t, g.Process.Pid)
					for range 3 {
						wantLoop(t, g)
					}
					if current := harness.Descriptors(t, g.Process.Pid); current > before+maxLoopDescriptors {
						t.Errorf("%d descriptors, %d before", current, before)
					}
				}
				for _, g := range gates {
					if n := len(g.Records("next hop failed")); n > maxLoopDescriptors {
						t.Errorf("%d lines of failures: mail goes round", n)
					}
				}
			})
		}
	}
}

// wantLoop sends a recipient into a loop.
func wantLoop(t testing.TB, g *harness.Gate) {
	t.Helper()
	c := harness.MustDial(t, g.Addr)
	c.Want(t, "MAIL FROM:<a@example.com>", "250")
	c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "554 5.4.6 Mail loop")
	c.Want(t, "QUIT", "221")
}

// TestThreeGatesInALoop is TestGatesInALoop with three gates.
func TestThreeGatesInALoop(t *testing.T) {
	t.Parallel()
	addrs := []string{harness.FreeAddr(t), harness.FreeAddr(t), harness.FreeAddr(t)}
	var gates []*harness.Gate
	for i, addr := range addrs {
		gates = append(gates, harness.StartGate(t, harness.Setup{Hostname: fmt.Sprintf("gate%d.example", i), Listen: addr, NextHop: "smtp://" + addrs[(i+1)%3]}))
	}
	before := harness.Descriptors(t, gates[0].Process.Pid)
	for range 3 {
		wantLoop(t, gates[0])
	}
	if current := harness.Descriptors(t, gates[0].Process.Pid); current > before+maxLoopDescriptors {
		t.Errorf("%d descriptors, %d before", current, before)
	}
}

// TestOwnNextHop has HAProxy send a gate's mail back to the gate.
func TestOwnNextHop(t *testing.T) {
	t.Parallel()
	back := harness.FreeAddr(t)
	addr := harness.FreeAddr(t)
	startHAProxy(t, back, addr)
	g := harness.StartGate(t, harness.Setup{Listen: addr, NextHop: "smtp://" + back})
	before := harness.Descriptors(t, g.Process.Pid)
	for range 3 {
		wantLoop(t, g)
	}
	if current := harness.Descriptors(t, g.Process.Pid); current > before+maxLoopDescriptors {
		t.Errorf("%d descriptors, %d before", current, before)
	}
	if r := g.WaitRecord("next hop failed"); !strings.Contains(r.Text("error"), "the next hop is this gate itself") {
		t.Errorf("the log says %v", r)
	}
	m := harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics")
	if up := harness.MetricValue(t, m, "spamgate_next_hop_up"); up != 0 {
		t.Errorf("next_hop_up is %v", up)
	}
}

// startHAProxy starts an HAProxy that forwards TCP from one address to another.
func startHAProxy(t testing.TB, from, to string) {
	t.Helper()
	program := harness.Program(t, "haproxy", "haproxy")
	conf := filepath.Join(t.TempDir(), "haproxy.cfg")
	harness.WriteFile(t, conf, fmt.Sprintf(`global
  maxconn 1000
defaults
  mode tcp
  timeout connect 30s
  timeout client 10m
  timeout server 10m
listen gate
  bind %s
  server gate %s
`, from, to))
	out := harness.NewOutput(t, "haproxy")
	cmd := exec.Command(program, "-db", "-f", conf)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		out.End()
	})
	harness.WaitFor(t, "HAProxy to answer", func() bool {
		c, err := net.Dial("tcp", from)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestGatesInAChain has a gate before another gate before a mail server of the same
// name, which is no loop.
func TestGatesInAChain(t *testing.T) {
	t.Parallel()
	s := harness.StartExim(t, harness.EximOptions{})
	const name = "mx.example.org" // Exim's name
	last := harness.StartGate(t, harness.Setup{Hostname: name, NextHop: "smtp://" + s.Addr})
	first := harness.StartGate(t, harness.Setup{Hostname: name, NextHop: "smtp://" + last.Addr})
	c := harness.MustDial(t, first.Addr)
	c.Want(t, "EHLO "+name, "250") // as a program of this machine does
	for range 2 {
		if reply := c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "chain")); !strings.HasPrefix(reply, "250") {
			t.Fatalf("the message was answered with %q", reply)
		}
	}
	s.Mail("you", 2)
}
