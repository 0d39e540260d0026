package nexthops

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// An smtpSink is Postfix's smtp-sink. It takes all mail, keeps none, and can be stopped.
type smtpSink struct {
	t       testing.TB
	addr    string
	process *exec.Cmd
}

func startSMTPSink(t testing.TB) *smtpSink {
	t.Helper()
	s := &smtpSink{t: t, addr: harness.FreeAddr(t)}
	s.start()
	return s
}

// start starts the program, also after it has ended.
func (s *smtpSink) start() {
	t := s.t
	t.Helper()
	args := []string{s.addr, "100"}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	process := exec.Command(harness.Program(t, "smtp-sink", "postfix"), args...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = process
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	harness.WaitFor(t, "smtp-sink to answer", func() bool { return harness.Greets(s.addr) })
}

func (s *smtpSink) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// TestWedgedNextHop stops the process of the first of two next hops. Its connections
// stay open, and its kernel accepts new ones. The second next hop delivers the clients'
// mail at once, whether the gate has a connection to the first one or not. If only
// reply_timeout ended the wait, the test would take too long.
func TestWedgedNextHop(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(map[bool]string{true: "kept", false: "new"}[kept], func(t *testing.T) {
			t.Parallel()
			first, second := startSMTPSink(t), startSMTPSink(t)
			g := harness.StartGate(t, harness.Setup{NoReuse: !kept, Keys: map[string]string{
				"next_hop": `connect_timeout = "2s"` + "\n" + `reply_timeout = "10m"`,
			}, NextHops: []string{"smtp://" + first.addr, "smtp://" + second.addr}})
			send := func(n int) {
				t.Helper()
				c := harness.MustDial(t, g.Addr)
				if reply := c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "wedged")); !strings.HasPrefix(reply, "250 ") {
					t.Fatalf("message %d was answered with %q", n, reply)
				}
				c.Want(t, "QUIT", "221")
			}
			send(1)
			first.signal(syscall.SIGSTOP)
			defer first.signal(syscall.SIGCONT)
			for n := range 3 {
				send(2 + n)
			}
			down := g.WaitRecord("next hop is down")
			if down.Text("next_hop") != "smtp://"+first.addr {
				t.Errorf("down: %v", down)
			}
			client := g.SocketClient()
			for addr, up := range map[string]float64{first.addr: 0, second.addr: 1} {
				m := harness.ReadMetrics(t, client, "http://gate/metrics")
				if got := harness.MetricValue(t, m, "spamgate_next_hop_up", "next_hop", "smtp://"+addr); got != up {
					t.Errorf("next_hop_up of %s is %v, want %v", addr, got, up)
				}
			}
			first.signal(syscall.SIGCONT)
			g.WaitRecord("next hop is back")
			send(5)
		})
	}
}

// TestWedgedInTransaction stops the only next hop after the first recipient. The next
// recipient soon gets 451.
func TestWedgedInTransaction(t *testing.T) {
	t.Parallel()
	s := startSMTPSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + s.addr, Keys: map[string]string{
		"next_hop": `connect_timeout = "1s"` + "\n" + `reply_timeout = "10m"`,
	}})
	c := harness.MustDial(t, g.Addr)
	c.Want(t, "MAIL FROM:<a@example.com>", "250")
	c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "250")
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	c.Want(t, "RCPT TO:<b@example.org>", "451 4.4.1")
	if r := g.WaitRecord("next hop failed"); !strings.Contains(r.Text("error"), "silent") {
		t.Errorf("the log says %v", r)
	}
}

// TestSlowRecipients has a Postfix that takes longer for each recipient than
// connect_timeout. The gate waits, and the other next hop gets nothing.
func TestSlowRecipients(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere, "smtpd_client_restrictions = sleep 4")
	spare := startSMTPSink(t)
	g := harness.StartGate(t, harness.Setup{NextHops: []string{"smtp://" + p.Addr, "smtp://" + spare.addr}, Keys: map[string]string{
		"next_hop": `connect_timeout = "2s"`,
	}})
	for range 2 {
		c := harness.MustDial(t, g.Addr)
		if reply := c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "slow")); !strings.HasPrefix(reply, "250 2.0.0 Ok: ") {
			t.Errorf("the message was answered with %q", reply)
		}
	}
	if down := g.Records("next hop is down"); len(down) > 0 {
		t.Errorf("the log says %v", down)
	}
}
