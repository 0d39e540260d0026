package nexthops

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestGatesServeForEachOther has two gates, each with a mail server and with the other
// gate in reserve. If one mail server is down, mail reaches the other one through the
// other gate, in both directions, although each gate is on the other's path then. If
// both are down, the client gets a temporary reply, and the mail does not go round.
func TestGatesServeForEachOther(t *testing.T) {
	t.Parallel()
	for _, balance := range []string{"priority", "round_robin"} {
		for _, reuse := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", balance, reuse), func(t *testing.T) {
				t.Parallel()
				servers := []*smtpSink{startSMTPSink(t), startSMTPSink(t)}
				addrs := []string{harness.FreeAddr(t), harness.FreeAddr(t)}
				var gates []*harness.Gate
				for i, s := range servers {
					gates = append(gates, harness.StartGate(t, harness.Setup{
						Hostname: fmt.Sprintf("gate%d.example", i), Listen: addrs[i], NoReuse: !reuse,
						NextHops: []string{"smtp://" + s.addr, "smtp://" + addrs[1-i]},
						Keys:     map[string]string{"next_hop": fmt.Sprintf("balance = %q", balance)},
					}))
				}
				pair := gatePair{t, servers, gates}
				for range 2 { // round robin uses each member
					pair.eachDelivers()
				}
				for i := range servers {
					pair.down(i)
					for range 3 {
						pair.eachDelivers()
					}
					pair.up(i)
					pair.eachDelivers()
				}
				pair.down(0)
				pair.down(1)
				before := []int{harness.Descriptors(t, gates[0].Process.Pid), harness.Descriptors(t, gates[1].Process.Pid)}
				for range 5 {
					for i, g := range gates {
						c := harness.MustDial(t, g.Addr)
						c.Want(t, "MAIL FROM:<a@example.com>", "250")
						c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "451 4.4.1")
						c.Want(t, "QUIT", "221")
						if current := harness.Descriptors(t, g.Process.Pid); current > before[i]+maxLoopDescriptors {
							t.Errorf("gate %d has %d descriptors, %d before", i, current, before[i])
						}
					}
				}
				pair.up(0)
				pair.eachDelivers()
			})
		}
	}
}

// A gatePair is two gates with a mail server each.
type gatePair struct {
	t       *testing.T
	servers []*smtpSink
	gates   []*harness.Gate
}

// eachDelivers sends a message through each gate.
func (p gatePair) eachDelivers() {
	p.t.Helper()
	for i, g := range p.gates {
		c := harness.MustDial(p.t, g.Addr)
		if reply := c.MustSend(p.t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "pair")); !strings.HasPrefix(reply, "250") {
			p.t.Errorf("gate %d: the message was answered with %q", i, reply)
		}
		c.Want(p.t, "QUIT", "221")
	}
}

// down kills a mail server.
func (p gatePair) down(i int) {
	p.t.Helper()
	s := p.servers[i]
	s.signal(syscall.SIGKILL)
	s.process.Wait()
	harness.WaitFor(p.t, "smtp-sink to be gone", func() bool { return !harness.Greets(s.addr) })
}

// up starts it again at its address, and waits until its gate has noticed.
func (p gatePair) up(i int) {
	p.t.Helper()
	s, g := p.servers[i], p.gates[i]
	back := func() int { return len(g.Records("next hop is back", "next_hop", "smtp://"+s.addr)) }
	before := back()
	s.start()
	harness.WaitFor(p.t, "the gate to notice", func() bool { return back() > before })
}
