package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// loopDescriptors is how many more files and sockets a gate in a loop may have open,
// over what it has at rest. A few messages go round while the gates do not know of each
// other yet.
const loopDescriptors = 30

// TestGatesInALoop has two gates hand mail to each other, with names of their own and
// with the same. One recipient must not take their descriptors, and the client hears
// what is wrong.
func TestGatesInALoop(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"one.example", "two.example"}, {"gate.example", "gate.example"}} {
		for _, reuse := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", names[1], reuse), func(t *testing.T) {
				t.Parallel()
				one, two := freeAddr(t), freeAddr(t)
				gates := []*gate{
					startGate(t, setup{hostname: names[0], listen: one, nextHop: "smtp://" + two, noReuse: !reuse}),
					startGate(t, setup{hostname: names[1], listen: two, nextHop: "smtp://" + one, noReuse: !reuse}),
				}
				for _, g := range gates {
					before := descriptors(t, g.process.Pid)
					for range 3 {
						wantLoop(t, g)
					}
					if now := descriptors(t, g.process.Pid); now > before+loopDescriptors {
						t.Errorf("%d descriptors, %d before", now, before)
					}
				}
				for _, g := range gates {
					if n := len(g.records("next hop failed")); n > loopDescriptors {
						t.Errorf("%d lines of failures: mail goes round", n)
					}
				}
			})
		}
	}
}

// wantLoop sends a recipient into a loop.
func wantLoop(t testing.TB, g *gate) {
	t.Helper()
	c := mustDial(t, g.addr)
	c.want(t, "MAIL FROM:<a@example.com>", "250")
	c.want(t, "RCPT TO:<"+mailbox+">", "554 5.4.6 Mail loop")
	c.want(t, "QUIT", "221")
}

// TestThreeGatesInALoop is TestGatesInALoop with one more.
func TestThreeGatesInALoop(t *testing.T) {
	t.Parallel()
	addrs := []string{freeAddr(t), freeAddr(t), freeAddr(t)}
	var gates []*gate
	for i, addr := range addrs {
		gates = append(gates, startGate(t, setup{hostname: fmt.Sprintf("gate%d.example", i), listen: addr, nextHop: "smtp://" + addrs[(i+1)%3]}))
	}
	before := descriptors(t, gates[0].process.Pid)
	for range 3 {
		wantLoop(t, gates[0])
	}
	if now := descriptors(t, gates[0].process.Pid); now > before+loopDescriptors {
		t.Errorf("%d descriptors, %d before", now, before)
	}
}

// TestOwnNextHop has HAProxy lead a gate's mail back to itself.
func TestOwnNextHop(t *testing.T) {
	t.Parallel()
	back := freeAddr(t)
	addr := freeAddr(t)
	startHAProxy(t, back, addr)
	g := startGate(t, setup{listen: addr, nextHop: "smtp://" + back})
	before := descriptors(t, g.process.Pid)
	for range 3 {
		wantLoop(t, g)
	}
	if now := descriptors(t, g.process.Pid); now > before+loopDescriptors {
		t.Errorf("%d descriptors, %d before", now, before)
	}
	if r := g.waitRecord("next hop failed"); !strings.Contains(r.string("error"), "the next hop is this gate itself") {
		t.Errorf("the log says %v", r)
	}
	m := metrics(t, g.socketClient(), "http://gate/metrics")
	if up := value(t, m, "spamgate_next_hop_up"); up != 0 {
		t.Errorf("next_hop_up is %v", up)
	}
}

// startHAProxy forwards TCP from an address to another.
func startHAProxy(t testing.TB, from, to string) {
	t.Helper()
	program := tool(t, "haproxy", "haproxy")
	conf := filepath.Join(t.TempDir(), "haproxy.cfg")
	writeFile(t, conf, fmt.Sprintf(`global
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
	out := newLines(t, "haproxy")
	cmd := exec.Command(program, "-db", "-f", conf)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		out.end()
	})
	pollFor(t, "HAProxy to answer", func() bool {
		c, err := net.Dial("tcp", from)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestGatesInAChain is no loop: one gate behind another, with a mail server of the same
// name behind both.
func TestGatesInAChain(t *testing.T) {
	t.Parallel()
	s := startExim(t, eximOptions{})
	const name = "mx.example.org" // Exim's
	last := startGate(t, setup{hostname: name, nextHop: "smtp://" + s.addr})
	first := startGate(t, setup{hostname: name, nextHop: "smtp://" + last.addr})
	c := mustDial(t, first.addr)
	c.want(t, "EHLO "+name, "250") // a program of this machine
	for range 2 {
		if reply := c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "chain")); !strings.HasPrefix(reply, "250 ") {
			t.Fatalf("the message was answered with %q", reply)
		}
	}
	s.mail("you", 2)
}
