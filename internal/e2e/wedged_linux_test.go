package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A sink is a smtp-sink of Postfix: it takes all mail, keeps none, and can be stopped.
type sink struct {
	t       testing.TB
	addr    string
	process *exec.Cmd
}

func startSink(t testing.TB) *sink {
	t.Helper()
	s := &sink{t: t, addr: freeAddr(t)}
	s.start()
	return s
}

// start starts the program, once more if it has ended.
func (s *sink) start() {
	t := s.t
	t.Helper()
	args := []string{s.addr, "100"}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	process := exec.Command(tool(t, "smtp-sink", "postfix"), args...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = process
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	pollFor(t, "smtp-sink to answer", func() bool { return greets(s.addr) })
}

func (s *sink) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// TestWedgedNextHop stops the first of two next hops, whose connections stay open and
// whose kernel goes on taking new ones. Clients have their mail delivered by the second,
// at once, whether the gate has a connection to the first or not. The test would wait for
// longer than it may if only reply_timeout ended the wait.
func TestWedgedNextHop(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(map[bool]string{true: "kept", false: "new"}[kept], func(t *testing.T) {
			t.Parallel()
			first, second := startSink(t), startSink(t)
			g := startGate(t, setup{noReuse: !kept, keys: map[string]string{
				"next_hop": `connect_timeout = "2s"` + "\n" + `reply_timeout = "10m"`,
			}, nextHops: []string{"smtp://" + first.addr, "smtp://" + second.addr}})
			send := func(n int) {
				t.Helper()
				c := mustDial(t, g.addr)
				if reply := c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "wedged")); !strings.HasPrefix(reply, "250 ") {
					t.Fatalf("message %d was answered with %q", n, reply)
				}
				c.want(t, "QUIT", "221")
			}
			send(1)
			first.signal(syscall.SIGSTOP)
			defer first.signal(syscall.SIGCONT)
			for n := range 3 {
				send(2 + n)
			}
			down := g.waitRecord("next hop is down")
			if down.string("next_hop") != "smtp://"+first.addr {
				t.Errorf("down: %v", down)
			}
			client := g.socketClient()
			for addr, up := range map[string]float64{first.addr: 0, second.addr: 1} {
				m := metrics(t, client, "http://gate/metrics")
				if got := value(t, m, "spamgate_next_hop_up", "next_hop", "smtp://"+addr); got != up {
					t.Errorf("next_hop_up of %s is %v, want %v", addr, got, up)
				}
			}
			first.signal(syscall.SIGCONT)
			g.waitRecord("next hop is back")
			send(5)
		})
	}
}

// TestWedgedInTransaction stops the only next hop behind the first recipient: the next
// one is answered soon, with 451.
func TestWedgedInTransaction(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + s.addr, keys: map[string]string{
		"next_hop": `connect_timeout = "1s"` + "\n" + `reply_timeout = "10m"`,
	}})
	c := mustDial(t, g.addr)
	c.want(t, "MAIL FROM:<a@example.com>", "250")
	c.want(t, "RCPT TO:<"+mailbox+">", "250")
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	c.want(t, "RCPT TO:<b@example.org>", "451 4.4.1")
	if r := g.waitRecord("next hop failed"); !strings.Contains(r.string("error"), "silent") {
		t.Errorf("the log says %v", r)
	}
}

// TestSlowRecipients has a Postfix that takes its time for each recipient, longer than the
// gate is silent about: it waits, and the other next hop gets nothing.
func TestSlowRecipients(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere, "smtpd_client_restrictions = sleep 4")
	spare := startSink(t)
	g := startGate(t, setup{nextHops: []string{"smtp://" + p.addr, "smtp://" + spare.addr}, keys: map[string]string{
		"next_hop": `connect_timeout = "2s"`,
	}})
	for range 2 {
		c := mustDial(t, g.addr)
		if reply := c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "slow")); !strings.HasPrefix(reply, "250 2.0.0 Ok: queued as") {
			t.Errorf("the message was answered with %q", reply)
		}
	}
	if down := g.records("next hop is down"); len(down) > 0 {
		t.Errorf("the log says %v", down)
	}
}
