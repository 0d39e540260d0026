package restarts

import (
	"fmt"
	"net"
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

// TestReload sends SIGHUP with a good configuration, and then with broken ones, which
// change nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	s := harness.Setup{Files: map[string]string{
		"blocked.txt": "spam.example  # the old list\n",
		"second.txt":  "more.example  # the new list\n",
	}}
	g := harness.StartGate(t, s)
	reload := func(config string) {
		t.Helper()
		harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), config)
		g.Signal(syscall.SIGHUP)
	}
	harness.WaitVerdict(t, g.Addr, "x@more.example", "250")

	s.Lists = harness.BlockedLists + "[[list]]\nname = \"second\"\npath = \"second.txt\"\n"
	s.Tables = "[policy]\ncontact = \"see https://example.net/\"\n"
	reload(s.Config())
	g.WaitRecord("reloaded")
	c := harness.MustDial(t, g.Addr)
	const want = "refused: list second (the new list); id "
	if reply, err := c.Verdict("x@more.example", "b@example.net"); err != nil || !strings.Contains(reply, want) || !strings.HasSuffix(reply, "; see https://example.net/") {
		t.Errorf("after the reload %q, %v", reply, err)
	}

	for _, bad := range []struct{ config, why string }{
		{"[[list]\n", "config.toml:1"},
		{s.Config() + "acton = \"defer\"\n", "did you mean \\\"action\\\"?"},
		{s.Config() + "[[list]]\nname = \"third\"\npath = \"third.txt\"\n", "third.txt"},
	} {
		before := len(g.Records("reload failed, nothing has changed"))
		reload(bad.config)
		line := g.Log.Wait("the reload to fail", func(line string) bool {
			return harness.ParseRecord(line).Matches("reload failed, nothing has changed", nil) && strings.Contains(line, bad.why)
		})
		if r := harness.ParseRecord(line); r.Text("level") != "ERROR" {
			t.Errorf("not logged as an error: %v", r)
		}
		if n := len(g.Records("reload failed, nothing has changed")); n != before+1 {
			t.Errorf("%d failures in the log, want %d", n, before+1)
		}
		if reply, err := c.Verdict("x@more.example", "b@example.net"); err != nil || !strings.Contains(reply, want) {
			t.Errorf("after a failed reload %q, %v", reply, err)
		}
		if reply, err := c.Verdict("x@spam.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, "550") {
			t.Errorf("after a failed reload %q, %v", reply, err)
		}
	}
}

// TestReloadNextHop changes the next hop during a transaction, which ends at the old
// one.
func TestReloadNextHop(t *testing.T) {
	t.Parallel()
	first, second := smtptest.NewSink(t), smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + first.Addr()})
	c := harness.MustDial(t, g.Addr)
	c.Want(t, "MAIL FROM:<a@example.com>", "250")
	c.Want(t, "RCPT TO:<b@example.net>", "250")
	c.Want(t, "DATA", "354")

	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), harness.Setup{NextHop: "smtp://" + second.Addr()}.Config())
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	c.Want(t, "Subject: first\r\n\r\n.", "250")
	c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "second"))
	for i, sink := range []*smtptest.Sink{first, second} {
		if n := len(sink.Messages()); n != 1 {
			t.Errorf("next hop %d has %d messages, want 1", i+1, n)
		}
	}
}

// TestReloadUndecided reloads an open gate whose next hop does not say whether it
// relays. The rest of the configuration changes, because the gate asked this next hop
// before. The gate does not change to a next hop that relays. All traffic of the tests
// stays on loopback.
func TestReloadUndecided(t *testing.T) {
	t.Parallel()
	first, second := smtptest.NewSink(t), smtptest.NewSink(t)
	first.SetReply("RCPT TO:<relay-test@example.net>", "554 5.7.1 Relay access denied")
	s := harness.Setup{Listen: "0.0.0.0:0", NextHop: "smtp://" + first.Addr()}
	g := harness.StartGate(t, s)
	_, port, err := net.SplitHostPort(g.Addr)
	if err != nil {
		t.Fatal(err)
	}
	g.Addr = "127.0.0.1:" + port
	reload := func() {
		t.Helper()
		harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
		g.Signal(syscall.SIGHUP)
	}
	first.SetReply("RCPT TO:<relay-test@example.net>", "451 4.3.0 Not now")
	s.Tables = "[policy]\nmode = \"monitor\"\n"
	reload()
	g.WaitRecord("reloaded")
	harness.WaitVerdict(t, g.Addr, "x@spam.example", "250")

	s.NextHop = "smtp://" + second.Addr()
	reload()
	r := g.WaitRecord("reload failed, nothing has changed")
	if why := r.Text("error"); !strings.Contains(why, "relays for the gate") || !strings.Contains(why, second.Addr()) {
		t.Error(why)
	}
}

// TestTerminate sends SIGTERM while one client is in a message and another is idle.
func TestTerminate(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{Listen: harness.FreeAddr(t), NextHop: "smtp://" + sink.Addr()})
	busy, idle := harness.MustDial(t, g.Addr), harness.MustDial(t, g.Addr)
	busy.Want(t, "MAIL FROM:<a@example.com>", "250")
	busy.Want(t, "RCPT TO:<b@example.net>", "250")
	busy.Want(t, "DATA", "354")
	message := harness.SmallMessage("a@example.com", "last")
	half := len(message) / 2
	fmt.Fprint(busy, message[:half])

	g.Signal(syscall.SIGTERM)
	if reply, err := idle.Reply(); err != nil || !strings.HasPrefix(reply, "421 4.3.2 ") {
		t.Errorf("the idle client heard %q, %v", reply, err)
	}
	if reply, err := idle.Reply(); err == nil {
		t.Errorf("the idle client's connection is still open, and said %q", reply)
	}
	if c, err := net.Dial("tcp", g.Addr); err == nil {
		c.Close()
		t.Error("it takes new clients")
	}
	fmt.Fprint(busy, message[half:])
	busy.Want(t, ".", "250 2.0.0 Ok: queued")
	if code := g.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	got := sink.Messages()
	if len(got) != 1 || !strings.HasSuffix(string(got[0].Body), message) {
		t.Errorf("the message that was under way: %v", got)
	}
	g.WaitRecord("stopped")
}

// TestState sends SIGUSR1, and the gate logs what is loaded.
func TestState(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{})
	harness.WaitVerdict(t, g.Addr, "x@spam.example", "550")
	g.Signal(syscall.SIGUSR1)
	r := g.WaitRecord("state")
	for _, key := range []string{"generation", "entries", "lookups", "maybes"} {
		if r[key] != 1.0 {
			t.Errorf("%s = %v, want 1", key, r[key])
		}
	}
	if n, _ := r["goroutines"].(float64); n < 5 {
		t.Errorf("goroutines = %v", r["goroutines"])
	}
	for _, key := range []string{"invalid", "false_positives"} {
		if r[key] != 0.0 {
			t.Errorf("%s = %v, want 0", key, r[key])
		}
	}
}

// shortDir makes a temporary directory with a short name, because the path of a socket
// may have only about a hundred bytes.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestSocketActivation passes the listening socket as systemd does, and receives the
// notices to systemd.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	dir, notify := t.TempDir(), filepath.Join(shortDir(t), "notify")
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notices.Close()
	wantNotice := func(want string) {
		t.Helper()
		notices.SetReadDeadline(time.Now().Add(harness.WorkTimeout))
		b := make([]byte, 4096)
		n, err := notices.Read(b)
		if err != nil || !strings.Contains(string(b[:n]), want) {
			t.Errorf("systemd was told %q, %v; want %s", b[:n], err, want)
		}
	}

	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Listen: "systemd"}.Config())
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	// The gate has the shell's process ID after the exec.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, harness.Binary(t))
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify)
	cmd.ExtraFiles = []*os.File{socket}
	g := harness.Launch(t, dir, cmd)
	if got := g.WaitListening(); got != l.Addr().String() {
		t.Errorf("it listens on %s, was passed %s", got, l.Addr())
	}
	wantNotice("READY=1")
	c := harness.MustDial(t, l.Addr().String())
	if reply := c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "socket")); !strings.HasPrefix(reply, "250") {
		t.Errorf("a message was answered with %q", reply)
	}
	g.Signal(syscall.SIGHUP)
	wantNotice("RELOADING=1")
	wantNotice("READY=1")
	g.Signal(syscall.SIGTERM)
	wantNotice("STOPPING=1")
	if code := g.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
