package restarts

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// startSuccession starts a gate that can hand over, and runs that program.
func startSuccession(t testing.TB, s harness.Setup, program string) *harness.Succession {
	t.Helper()
	dir := s.Dir(t)
	g := harness.LaunchSuccession(t, dir, nil, nil, program, "serve")
	g.Addr = g.WaitListening()
	return g
}

// TestHandover hands a gate over again and again while clients send through it. They
// notice nothing but a 421 on a connection that has had a message.
func TestHandover(t *testing.T) {
	t.Parallel()
	const handovers = 12
	sink := smtptest.NewSink(t)
	g := startSuccession(t, harness.Setup{NextHop: "smtp://" + sink.Addr()}, harness.Binary(t))
	idle := harness.MustDial(t, g.Addr)
	l := harness.StartLoad(t, g.Addr, false)
	for range handovers {
		l.During(harness.Scale(1000)/handovers+1, g.HandOver)
	}
	// Some clients send after an old process's grace and before its end.
	l.During(harness.Scale(200), func() { g.WaitNth(handovers, "ended") })
	l.During(harness.Scale(200), func() {})
	sent := l.Stop()
	if reply, err := idle.Reply(); err != nil || !strings.HasPrefix(reply, "421 4.3.2 ") {
		t.Errorf("the idle client heard %q, %v", reply, err)
	}
	if reply, err := idle.Reply(); err == nil {
		t.Errorf("the idle client's connection is still open, and said %q", reply)
	}
	g.Stop()
	g.WantEnded(handovers + 1)
	harness.WantOnce(t, sink, sent)
	t.Logf("%d messages, %d times 421", len(sent), l.Tempfailed.Load())
}

// TestHandoverTransaction hands a gate over while one client is in a message and another
// has just connected.
func TestHandoverTransaction(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startSuccession(t, harness.Setup{NextHop: "smtp://" + sink.Addr()}, harness.Binary(t))
	busy, fresh := harness.MustDial(t, g.Addr), harness.MustDial(t, g.Addr)
	busy.Want(t, "MAIL FROM:<a@example.com>", "250")
	busy.Want(t, "RCPT TO:<b@example.net>", "250")
	busy.Want(t, "DATA", "354")
	fmt.Fprint(busy, "Message-ID: <m1@example.com>\r\n")

	before := time.Now()
	g.HandOver()
	const leave = "421 4.3.2 "
	reply := fresh.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m2"))
	harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m3"))
	if strings.HasPrefix(reply, leave) && time.Since(before) >= harness.HandoverGrace { // this test was delayed
		harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m2"))
	} else if reply, err := fresh.Reply(); err != nil || !strings.HasPrefix(reply, leave) {
		t.Errorf("the client between transactions heard %q, %v", reply, err)
	}
	if n := len(g.Records("ended")); n != 0 {
		t.Error("the old process did not wait for its client")
	}
	busy.Want(t, "\r\n.", "250")
	g.WaitRecord("ended", "code", "0")
	harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m4"))
	g.Stop()
	g.WantEnded(2)
	harness.WantOnce(t, sink, map[string]bool{"m1": true, "m2": true, "m3": true, "m4": true})
}

// TestHandoverFails has successors that do not come up.
func TestHandoverFails(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := harness.Setup{NextHop: "smtp://" + sink.Addr()}
	program := filepath.Join(t.TempDir(), "spamgate")
	copyFile(t, harness.Binary(t), program)
	g := startSuccession(t, s, program)
	kept := harness.MustDial(t, g.Addr)
	n := 0
	send := func() {
		t.Helper()
		for _, c := range []*harness.Client{kept, harness.MustDial(t, g.Addr)} {
			n++
			c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", fmt.Sprintf("m%d", n)))
		}
	}
	const failed = "not handed over, this process goes on"

	file := filepath.Join(g.Dir, "config.toml")
	harness.WriteFile(t, file, "[[list]\n")
	g.Signal(syscall.SIGUSR2)
	g.WaitRecord(failed, "error", "exit status 2; config.toml:1:1: has 2 opening and 1 closing brackets; write [[list]]")
	if !strings.Contains(g.Log.String(), "\nspamgate: config.toml:1") {
		t.Error("the successor did not say on standard error what is wrong")
	}
	send()

	undecidedConfig(t, file)
	g.Signal(syscall.SIGUSR2)
	waitUndecided(g)
	heirs := g.Records("handing over")
	heir := heirs[len(heirs)-1].PID()
	g.Signal(syscall.SIGUSR2)
	g.WaitRecord("already handing over", "pid", fmt.Sprint(heir))
	send()
	if err := syscall.Kill(heir, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	g.WaitRecord(failed, "error", "signal: killed")
	send()

	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	g.Signal(syscall.SIGUSR2)
	g.WaitRecord(failed, "program", program)
	send()

	harness.WriteFile(t, file, s.Config())
	copyFile(t, harness.Binary(t), program)
	g.HandOver()
	send()
	g.Stop()
	g.WantEnded(2) // the first process has waited for the others itself
	sent := map[string]bool{}
	for i := range n {
		sent[fmt.Sprintf("m%d", i+1)] = true
	}
	harness.WantOnce(t, sink, sent)
}

// undecidedConfig writes a configuration with which a gate waits before it opens: its
// next hop does not say yet whether it relays. All traffic of the tests stays on
// loopback.
func undecidedConfig(t testing.TB, file string) *smtptest.Sink {
	t.Helper()
	sink := smtptest.NewSink(t)
	sink.SetReply("RCPT", "451 4.3.0 Not now")
	harness.WriteFile(t, file, harness.Setup{Listen: "0.0.0.0:0", NextHop: "smtp://" + sink.Addr()}.Config())
	return sink
}

// waitUndecided waits until a successor waits for its next hop.
func waitUndecided(g *harness.Succession) {
	g.T.Helper()
	g.Log.Wait("the successor to wait for its next hop", func(line string) bool {
		return strings.HasPrefix(harness.ParseRecord(line).Text("msg"), "not listening yet: ")
	})
}

// TestHandoverAddress hands over to a successor that listens on another address, and
// sends SIGHUP while it starts.
func TestHandoverAddress(t *testing.T) {
	t.Parallel()
	g := startSuccession(t, harness.Setup{Listen: harness.FreeAddr(t)}, harness.Binary(t))
	sink := undecidedConfig(t, filepath.Join(g.Dir, "config.toml"))
	g.Signal(syscall.SIGUSR2)
	waitUndecided(g)
	g.Signal(syscall.SIGHUP)
	g.WaitNth(1, "reloaded")
	sink.SetReply("RCPT", "554 5.7.1 Relay access denied")
	g.Follow(g.WaitRecord("handed over").PID())
	g.WaitNth(2, "reloaded") // the successor reloads, since it may have read the old files

	old, addr := g.Addr, g.WaitNth(2, "listening").Text("addr")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	harness.MustDial(t, "127.0.0.1:"+port)
	g.WaitRecord("ended", "code", "0")
	if c, err := net.Dial("tcp", old); err == nil {
		c.Close()
		t.Errorf("somebody still listens on %s", old)
	}
	g.Stop()
	g.WantEnded(2)
}

// TestHandoverTerminate sends SIGTERM while a successor starts.
func TestHandoverTerminate(t *testing.T) {
	t.Parallel()
	g := startSuccession(t, harness.Setup{}, harness.Binary(t))
	undecidedConfig(t, filepath.Join(g.Dir, "config.toml"))
	g.Signal(syscall.SIGUSR2)
	waitUndecided(g)
	heir := g.WaitRecord("handing over").PID()
	g.Stop()
	g.WantEnded(1)
	if err := syscall.Kill(heir, 0); err != syscall.ESRCH {
		t.Errorf("the successor is still there: %v", err)
	}
}
