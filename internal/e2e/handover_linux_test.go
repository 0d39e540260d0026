package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// startReaped starts a gate that can be succeeded by others, in a directory with
// the given program.
func startReaped(t testing.TB, s setup, program string) *succession {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail\n")
	g := launchReaped(t, dir, nil, nil, program, "serve")
	g.addr = g.waitListening()
	return g
}

// handOver has the gate succeeded by another process, and follows that.
func (g *succession) handOver() {
	g.t.Helper()
	g.signal(syscall.SIGUSR2)
	g.handovers++
	g.follow(g.waitNth(g.handovers, "handed over").pid())
}

// waitNth waits until the log has so many lines with a message text, and returns
// the last of them.
func (g *succession) waitNth(n int, msg string) record {
	g.t.Helper()
	return parseRecord(g.log.wait(fmt.Sprintf("%d lines with %q", n, msg), func(line string) bool {
		if parseRecord(line).matches(msg, nil) {
			n--
			return n == 0
		}
		return false
	}))
}

// wantEnded wants so many processes to have ended well.
func (g *succession) wantEnded(n int) {
	g.t.Helper()
	ended := g.records("ended")
	if len(ended) != n {
		g.t.Errorf("%d processes have ended, want %d", len(ended), n)
	}
	for _, r := range ended {
		if r["code"] != 0.0 {
			g.t.Errorf("process %d has ended with exit code %v", r.pid(), r["code"])
		}
	}
}

// TestHandover hands a gate over again and again while clients send through it.
// None of them may notice, but for 421 on a connection that has had a message.
func TestHandover(t *testing.T) {
	t.Parallel()
	const handovers = 12
	sink := smtptest.NewSink(t)
	g := startReaped(t, setup{nextHop: "smtp://" + sink.Addr()}, binary(t))
	idle := mustDial(t, g.addr)
	l := startLoad(t, g.addr, false)
	for range handovers {
		l.during(scale(1000)/handovers+1, g.handOver)
	}
	// Some are sent over connections that are between the old processes' grace and
	// their end.
	l.during(scale(200), func() { g.waitNth(handovers, "ended") })
	l.during(scale(200), func() {})
	sent := l.stop()
	if reply, err := idle.reply(); err != nil || !strings.HasPrefix(reply, "421 4.3.2 ") {
		t.Errorf("the idle client heard %q, %v", reply, err)
	}
	if reply, err := idle.reply(); err == nil {
		t.Errorf("the idle client's connection is still open, and said %q", reply)
	}
	g.stop()
	g.wantEnded(handovers + 1)
	wantOnce(t, sink, sent)
	t.Logf("%d messages, %d times 421", len(sent), l.told.Load())
}

// TestHandoverTransaction hands a gate over while one client is inside a message,
// and another has just connected.
func TestHandoverTransaction(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startReaped(t, setup{nextHop: "smtp://" + sink.Addr()}, binary(t))
	busy, fresh := mustDial(t, g.addr), mustDial(t, g.addr)
	busy.want(t, "MAIL FROM:<a@example.com>", "250")
	busy.want(t, "RCPT TO:<b@example.net>", "250")
	busy.want(t, "DATA", "354")
	fmt.Fprint(busy, "Message-ID: <m1@example.com>\r\n")

	before := time.Now()
	g.handOver()
	const leave = "421 4.3.2 "
	reply := fresh.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m2"))
	mustDial(t, g.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m3"))
	if strings.HasPrefix(reply, leave) && time.Since(before) >= grace { // this test was held up
		mustDial(t, g.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m2"))
	} else if reply, err := fresh.reply(); err != nil || !strings.HasPrefix(reply, leave) {
		t.Errorf("the client between transactions heard %q, %v", reply, err)
	}
	if n := len(g.records("ended")); n != 0 {
		t.Error("the old process did not wait for its client")
	}
	busy.want(t, "\r\n.", "250")
	g.waitRecord("ended", "code", "0")
	mustDial(t, g.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m4"))
	g.stop()
	g.wantEnded(2)
	wantOnce(t, sink, map[string]bool{"m1": true, "m2": true, "m3": true, "m4": true})
}

// TestHandoverFails has successors that do not come up.
func TestHandoverFails(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := setup{nextHop: "smtp://" + sink.Addr()}
	program := filepath.Join(t.TempDir(), "spamgate")
	copyFile(t, binary(t), program)
	g := startReaped(t, s, program)
	kept := mustDial(t, g.addr)
	n := 0
	send := func() {
		t.Helper()
		for _, c := range []*client{kept, mustDial(t, g.addr)} {
			n++
			c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", fmt.Sprintf("m%d", n)))
		}
	}
	const failed = "not handed over, this process goes on"

	file := filepath.Join(g.dir, "config.toml")
	writeFile(t, file, "[[list]\n")
	g.signal(syscall.SIGUSR2)
	g.waitRecord(failed, "error", "exit status 2; what it said is on standard error")
	if !strings.Contains(g.log.String(), "config.toml:1") {
		t.Error("the successor did not say what is wrong")
	}
	send()

	undecidedConfig(t, file)
	g.signal(syscall.SIGUSR2)
	g.waitUndecided()
	heirs := g.records("handing over")
	heir := heirs[len(heirs)-1].pid()
	g.signal(syscall.SIGUSR2)
	g.waitRecord("already handing over", "pid", fmt.Sprint(heir))
	send()
	if err := syscall.Kill(heir, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	g.waitRecord(failed, "error", "signal: killed")
	send()

	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	g.signal(syscall.SIGUSR2)
	g.waitRecord(failed, "program", program)
	send()

	writeFile(t, file, s.config())
	copyFile(t, binary(t), program)
	g.handOver()
	send()
	g.stop()
	g.wantEnded(2) // the others were the first one's own to wait for
	sent := map[string]bool{}
	for i := range n {
		sent[fmt.Sprintf("m%d", i+1)] = true
	}
	wantOnce(t, sink, sent)
}

// undecidedConfig has a gate that reads it wait, before it opens, for its next hop
// to say whether it relays. (All traffic of these tests stays on loopback.)
func undecidedConfig(t testing.TB, file string) *smtptest.Sink {
	t.Helper()
	sink := smtptest.NewSink(t)
	sink.SetReply("RCPT", "451 4.3.0 Not now")
	writeFile(t, file, setup{listen: "0.0.0.0:0", nextHop: "smtp://" + sink.Addr()}.config())
	return sink
}

// waitUndecided waits until a successor waits for its next hop.
func (g *succession) waitUndecided() {
	g.t.Helper()
	g.log.wait("the successor to wait for its next hop", func(line string) bool {
		return strings.HasPrefix(parseRecord(line).string("msg"), "not listening yet: ")
	})
}

// TestHandoverAddress hands over to a successor that listens elsewhere, and has
// SIGHUP come while that is starting.
func TestHandoverAddress(t *testing.T) {
	t.Parallel()
	g := startReaped(t, setup{listen: freeAddr(t)}, binary(t))
	sink := undecidedConfig(t, filepath.Join(g.dir, "config.toml"))
	g.signal(syscall.SIGUSR2)
	g.waitUndecided()
	g.signal(syscall.SIGHUP)
	g.waitNth(1, "reloaded")
	sink.SetReply("RCPT", "554 5.7.1 Relay access denied")
	g.follow(g.waitRecord("handed over").pid())
	g.waitNth(2, "reloaded") // the successor, which may have read the old files

	old, addr := g.addr, g.waitNth(2, "listening").string("addr")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	mustDial(t, "127.0.0.1:"+port)
	g.waitRecord("ended", "code", "0")
	if c, err := net.Dial("tcp", old); err == nil {
		c.Close()
		t.Errorf("somebody still listens on %s", old)
	}
	g.stop()
	g.wantEnded(2)
}

// TestHandoverTerminate has SIGTERM come while a successor is starting.
func TestHandoverTerminate(t *testing.T) {
	t.Parallel()
	g := startReaped(t, setup{}, binary(t))
	undecidedConfig(t, filepath.Join(g.dir, "config.toml"))
	g.signal(syscall.SIGUSR2)
	g.waitUndecided()
	heir := g.waitRecord("handing over").pid()
	g.stop()
	g.wantEnded(1)
	if err := syscall.Kill(heir, 0); err != syscall.ESRCH {
		t.Errorf("the successor is still there: %v", err)
	}
}
