package e2e

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

	"spamgate/internal/smtptest"
)

// TestReload has SIGHUP read a good configuration, and then broken ones, which
// change nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	s := setup{files: map[string]string{
		"blocked.txt": "spam.example  # the old list\n",
		"second.txt":  "more.example  # the new list\n",
	}}
	g := startGate(t, s)
	reload := func(config string) {
		t.Helper()
		writeFile(t, filepath.Join(g.dir, "config.toml"), config)
		g.signal(syscall.SIGHUP)
	}
	waitVerdict(t, g.addr, "x@more.example", "250")

	s.lists = blockedLists + "[[list]]\nname = \"second\"\npath = \"second.txt\"\n"
	s.more = "[policy]\ncontact = \"see https://example.net/\"\n"
	reload(s.config())
	g.waitRecord("reloaded")
	c := mustDial(t, g.addr)
	const want = "refused: list second (the new list); id "
	if reply, err := c.verdict("x@more.example", "b@example.net"); err != nil || !strings.Contains(reply, want) || !strings.HasSuffix(reply, "; see https://example.net/") {
		t.Errorf("after the reload %q, %v", reply, err)
	}

	for _, bad := range []struct{ config, why string }{
		{"[[list]\n", "config.toml:1"},
		{s.config() + "acton = \"defer\"\n", "did you mean \\\"action\\\"?"},
		{s.config() + "[[list]]\nname = \"third\"\npath = \"third.txt\"\n", "third.txt"},
	} {
		before := len(g.records("reload failed, nothing has changed"))
		reload(bad.config)
		line := g.log.wait("the reload to fail", func(line string) bool {
			return parseRecord(line).matches("reload failed, nothing has changed", nil) && strings.Contains(line, bad.why)
		})
		if r := parseRecord(line); r.string("level") != "ERROR" {
			t.Errorf("not logged as an error: %v", r)
		}
		if n := len(g.records("reload failed, nothing has changed")); n != before+1 {
			t.Errorf("%d failures in the log, want %d", n, before+1)
		}
		if reply, err := c.verdict("x@more.example", "b@example.net"); err != nil || !strings.Contains(reply, want) {
			t.Errorf("after a failed reload %q, %v", reply, err)
		}
		if reply, err := c.verdict("x@spam.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, "550") {
			t.Errorf("after a failed reload %q, %v", reply, err)
		}
	}
}

// TestReloadNextHop changes the next hop while a transaction is open: it ends
// where it began.
func TestReloadNextHop(t *testing.T) {
	t.Parallel()
	first, second := smtptest.NewSink(t), smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + first.Addr()})
	c := mustDial(t, g.addr)
	c.want(t, "MAIL FROM:<a@example.com>", "250")
	c.want(t, "RCPT TO:<b@example.net>", "250")
	c.want(t, "DATA", "354")

	writeFile(t, filepath.Join(g.dir, "config.toml"), setup{nextHop: "smtp://" + second.Addr()}.config())
	g.signal(syscall.SIGHUP)
	g.waitRecord("reloaded")
	c.want(t, "Subject: first\r\n\r\n.", "250")
	c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "second"))
	for i, sink := range []*smtptest.Sink{first, second} {
		if n := len(sink.Messages()); n != 1 {
			t.Errorf("next hop %d has %d messages, want 1", i+1, n)
		}
	}
}

// TestReloadUndecided reloads an open gate whose next hop does not say whether it
// relays: all else changes, as that one was asked before. To one that relays it is
// not changed. (All traffic of these tests stays on loopback.)
func TestReloadUndecided(t *testing.T) {
	t.Parallel()
	first, second := smtptest.NewSink(t), smtptest.NewSink(t)
	first.SetReply("RCPT TO:<relay-test@example.net>", "554 5.7.1 Relay access denied")
	s := setup{listen: "0.0.0.0:0", nextHop: "smtp://" + first.Addr()}
	g := startGate(t, s)
	_, port, err := net.SplitHostPort(g.addr)
	if err != nil {
		t.Fatal(err)
	}
	g.addr = "127.0.0.1:" + port
	reload := func() {
		t.Helper()
		writeFile(t, filepath.Join(g.dir, "config.toml"), s.config())
		g.signal(syscall.SIGHUP)
	}
	first.SetReply("RCPT TO:<relay-test@example.net>", "451 4.3.0 Not now")
	s.more = "[policy]\nmode = \"monitor\"\n"
	reload()
	g.waitRecord("reloaded")
	waitVerdict(t, g.addr, "x@spam.example", "250")

	s.nextHop = "smtp://" + second.Addr()
	reload()
	r := g.waitRecord("reload failed, nothing has changed")
	if why := r.string("error"); !strings.Contains(why, "relays for the gate") || !strings.Contains(why, second.Addr()) {
		t.Error(why)
	}
}

// TestTerminate has SIGTERM come while one client is in the middle of a message
// and another is idle.
func TestTerminate(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{listen: freeAddr(t), nextHop: "smtp://" + sink.Addr()})
	busy, idle := mustDial(t, g.addr), mustDial(t, g.addr)
	busy.want(t, "MAIL FROM:<a@example.com>", "250")
	busy.want(t, "RCPT TO:<b@example.net>", "250")
	busy.want(t, "DATA", "354")
	message := letter("a@example.com", "last")
	half := len(message) / 2
	fmt.Fprint(busy, message[:half])

	g.signal(syscall.SIGTERM)
	if reply, err := idle.reply(); err != nil || !strings.HasPrefix(reply, "421 4.3.2 ") {
		t.Errorf("the idle client heard %q, %v", reply, err)
	}
	if reply, err := idle.reply(); err == nil {
		t.Errorf("the idle client's connection is still open, and said %q", reply)
	}
	if c, err := net.Dial("tcp", g.addr); err == nil {
		c.Close()
		t.Error("it takes new clients")
	}
	fmt.Fprint(busy, message[half:])
	busy.want(t, ".", "250 2.0.0 Ok: queued")
	if code := g.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	got := sink.Messages()
	if len(got) != 1 || !strings.HasSuffix(string(got[0].Body), message) {
		t.Errorf("the message that was under way: %v", got)
	}
	g.waitRecord("stopped")
}

// TestState has SIGUSR1 log what is loaded.
func TestState(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{})
	waitVerdict(t, g.addr, "x@spam.example", "550")
	g.signal(syscall.SIGUSR1)
	r := g.waitRecord("state")
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

// shortDir is a temporary directory with a short name: a socket's path may have no
// more than about a hundred bytes.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestSocketActivation passes the listening socket as systemd does, and takes
// the notices that systemd is sent.
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
		notices.SetReadDeadline(time.Now().Add(lateLimit))
		b := make([]byte, 4096)
		n, err := notices.Read(b)
		if err != nil || !strings.Contains(string(b[:n]), want) {
			t.Errorf("systemd was told %q, %v; want %s", b[:n], err, want)
		}
	}

	writeFile(t, filepath.Join(dir, "config.toml"), setup{listen: "systemd"}.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	// The shell gives its own process number, which it has until the exec and
	// the gate has after it.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, binary(t))
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify)
	cmd.ExtraFiles = []*os.File{socket}
	g := launch(t, dir, cmd)
	if got := g.waitListening(); got != l.Addr().String() {
		t.Errorf("it listens on %s, was passed %s", got, l.Addr())
	}
	wantNotice("READY=1")
	c := mustDial(t, l.Addr().String())
	if reply := c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "socket")); !strings.HasPrefix(reply, "250") {
		t.Errorf("a message was answered with %q", reply)
	}
	g.signal(syscall.SIGHUP)
	wantNotice("RELOADING=1")
	wantNotice("READY=1")
	g.signal(syscall.SIGTERM)
	wantNotice("STOPPING=1")
	if code := g.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
