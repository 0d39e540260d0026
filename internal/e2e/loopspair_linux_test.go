package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestGatesServeForEachOther has two gates with a mail server each, and the other gate in
// reserve. Either mail server may be down: mail reaches the other one through the other
// gate, in both directions, though each gate is on the other's path by then. If both are
// down, the client hears a temporary reply, and the mail does not go round.
func TestGatesServeForEachOther(t *testing.T) {
	t.Parallel()
	for _, balance := range []string{"priority", "round_robin"} {
		for _, reuse := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", balance, reuse), func(t *testing.T) {
				t.Parallel()
				servers := []*sink{startSink(t), startSink(t)}
				addrs := []string{freeAddr(t), freeAddr(t)}
				var gates []*gate
				for i, s := range servers {
					gates = append(gates, startGate(t, setup{
						hostname: fmt.Sprintf("gate%d.example", i), listen: addrs[i], noReuse: !reuse,
						nextHops: []string{"smtp://" + s.addr, "smtp://" + addrs[1-i]},
						keys:     map[string]string{"next_hop": fmt.Sprintf("balance = %q", balance)},
					}))
				}
				pair := gatePair{t, servers, gates}
				for range 2 { // with round robin each member is asked
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
				before := []int{descriptors(t, gates[0].process.Pid), descriptors(t, gates[1].process.Pid)}
				for range 5 {
					for i, g := range gates {
						c := mustDial(t, g.addr)
						c.want(t, "MAIL FROM:<a@example.com>", "250")
						c.want(t, "RCPT TO:<"+mailbox+">", "451 4.4.1")
						c.want(t, "QUIT", "221")
						if now := descriptors(t, g.process.Pid); now > before[i]+loopDescriptors {
							t.Errorf("gate %d has %d descriptors, %d before", i, now, before[i])
						}
					}
				}
				pair.up(0)
				pair.eachDelivers()
			})
		}
	}
}

// gatePair is two gates that have a mail server each.
type gatePair struct {
	t       *testing.T
	servers []*sink
	gates   []*gate
}

// eachDelivers sends a message through each gate.
func (p gatePair) eachDelivers() {
	p.t.Helper()
	for i, g := range p.gates {
		c := mustDial(p.t, g.addr)
		if reply := c.mustSend(p.t, "a@example.com", mailbox, letter("a@example.com", "pair")); !strings.HasPrefix(reply, "250 ") {
			p.t.Errorf("gate %d: the message was answered with %q", i, reply)
		}
		c.want(p.t, "QUIT", "221")
	}
}

// down ends a mail server.
func (p gatePair) down(i int) {
	p.t.Helper()
	s := p.servers[i]
	s.signal(syscall.SIGKILL)
	s.process.Wait()
	pollFor(p.t, "smtp-sink to be gone", func() bool { return !greets(s.addr) })
}

// up starts it again, at its address, and waits until its gate has noticed.
func (p gatePair) up(i int) {
	p.t.Helper()
	s, g := p.servers[i], p.gates[i]
	back := func() int { return len(g.records("next hop is back", "next_hop", "smtp://"+s.addr)) }
	before := back()
	s.start()
	pollFor(p.t, "the gate to notice", func() bool { return back() > before })
}
