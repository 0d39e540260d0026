package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/defaultconfig"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// defaultPerClient is the default of client_connections.
const defaultPerClient = 50

// wantPerClientLimit opens as many connections of one client as the default allows. The
// client's next connection gets the reason, the log says what to write, and another
// client is let in, which it returns.
func wantPerClientLimit(t *testing.T, g *harness.Gate) *harness.Client {
	t.Helper()
	const crowded, other = "192.0.2.1", "192.0.2.2" // in one network
	for range defaultPerClient {
		connectFrom(t, g.Addr, crowded).WantReply(t, "220 ")
	}
	for range 3 {
		c := connectFrom(t, g.Addr, crowded)
		c.WantReply(t, "421 4.7.0 Too many connections from your address")
		c.WantClosed(t)
		r := g.WaitRecord("limited", "key", "client_connections", "value", fmt.Sprint(defaultPerClient), "client", c.LocalAddr().String())
		if hint := r.Text("hint"); !strings.Contains(hint, "limits_exempt") || !strings.Contains(hint, "client_connections = 100") {
			t.Errorf("the log says what to do: %q", hint)
		}
	}
	// Programs of this machine share an address.
	for range defaultPerClient + 10 {
		connectFrom(t, g.Addr, "127.0.0.2").WantReply(t, "220 ")
	}
	return harness.MustDialFrom(t, g.Addr, other)
}

// TestShippedConnections checks that with the shipped configuration one client has at
// most 50 connections, and that another one is served meanwhile.
func TestShippedConnections(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	text := strings.Replace(defaultconfig.Config(), `addr = "127.0.0.1:2525"`, fmt.Sprintf("addr = \"127.0.0.1:0\"\nproxy_protocol = [%q]", harness.ProxyAddr), 1)
	text = strings.Replace(text, `hostname = ""`, `hostname = "gate.example"`, 1)
	text = strings.Replace(text, `addr = "maildir:mail"`, fmt.Sprintf("addr = %q", "smtp://"+sink.Addr()), 1)
	text += "\n[log]\nformat = \"json\"\n"
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lists"), defaultconfig.Lists()); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), text)
	g := harness.Serve(t, dir)
	g.WaitRecord("limits on connections (0: none)", "max_connections", "1000", "client_connections", fmt.Sprint(defaultPerClient))
	c := wantPerClientLimit(t, g)
	if reply := c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m0")); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the other client's message is answered with %q", reply)
	}
	harness.WantOnce(t, sink, map[string]bool{"m0": true})
}

// TestReloadLimits: a limit that was raised in an emergency counts for the next client.
func TestReloadLimits(t *testing.T) {
	t.Parallel()
	s := harness.Setup{Keys: map[string]string{"listen": "max_connections = 1"}}
	g := harness.StartGate(t, s)
	first := harness.MustDial(t, g.Addr)
	connectFrom(t, g.Addr, "127.0.0.2").WantReply(t, "421 4.7.0 Too many connections at this server")
	s.Keys["listen"] = "max_connections = 2"
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	harness.MustDialFrom(t, g.Addr, "127.0.0.3")
	connectFrom(t, g.Addr, "127.0.0.2").WantReply(t, "421 4.7.0 Too many connections at this server")
	first.Want(t, "NOOP", "250")
}

// TestExampleConnections is TestShippedConnections with the example for Postfix and a
// real Postfix.
func TestExampleConnections(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "postfix")
	p := harness.StartPostfixService(t, e.ReplaceIn(e.Lines(0), "127.0.0.1:10025 ", "ADDR:PORT "), harness.Everywhere)
	e.Replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+p.Addr))
	e.Replace(`addr = "127.0.0.1:0"`, fmt.Sprintf("addr = \"127.0.0.1:0\"\nproxy_protocol = [%q]", harness.ProxyAddr))
	g := e.Start()
	c := wantPerClientLimit(t, g)
	message := harness.SmallMessage("a@example.com", "other")
	if reply := c.MustSend(t, "a@example.com", harness.Mailbox, message); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the other client's message is answered with %q", reply)
	}
	if mail := p.OneMail("you"); !strings.HasSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("the mail arrived changed:\n%q", mail)
	}
}

// TestConnectionsFitDescriptors has a gate that may open few files. It raises its soft
// limit, takes as many clients as it can serve, says so, and serves each of them with
// its own connection to the next hop.
func TestConnectionsFitDescriptors(t *testing.T) {
	t.Parallel()
	// The Go runtime raises the soft limit to one less than the hard limit.
	const soft, hard, raised, room = 100, 301, 300, 70 // (300 - 128 - 32) / 2
	sink := smtptest.NewSink(t)
	dir := t.TempDir()
	s := harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{"next_hop": noNames}}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	script := fmt.Sprintf(`ulimit -Sn %d && ulimit -Hn %d && exec "$0" serve`, soft, hard)
	g := harness.LaunchSuccession(t, dir, nil, nil, "/bin/sh", "-c", script, harness.Binary(t))
	g.Addr = g.WaitListening()
	wantLimit := func() {
		t.Helper()
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", g.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), fmt.Sprintf("Max open files %d %d files", raised, hard)) {
			t.Errorf("the limits of the process are\n%s", limits)
		}
	}
	wantLimit()
	g.WaitRecord("limits on connections (0: none)", "max_connections", fmt.Sprint(room), "descriptors", fmt.Sprint(raised))
	g.WaitRecord(fmt.Sprintf(`max_connections = "auto" is only %d for each listener, since the process may open %d files; `+
		`raise the limit (LimitNOFILE= in the unit, or ulimit -n): 2160 is enough for 1000`, room, raised))

	var crowd []*harness.Client
	for range room {
		c := harness.MustDialFrom(t, g.Addr, "127.0.0.2")
		crowd = append(crowd, c)
	}
	late := connectFrom(t, g.Addr, "127.0.0.3")
	late.WantReply(t, "421 4.7.0 Too many connections at this server")
	r := g.WaitRecord("limited", "key", "max_connections", "value", fmt.Sprint(room))
	if hint := r.Text("hint"); !strings.Contains(hint, "max_connections = 140") || !strings.Contains(hint, "descriptors") {
		t.Errorf("the log says what to do: %q", hint)
	}
	sent := map[string]bool{}
	for _, c := range crowd { // from here on each has a connection to the next hop
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<b@example.net>", "250")
	}
	for i, c := range crowd {
		id := fmt.Sprintf("m%d", i)
		sent[id] = true
		c.Want(t, "DATA", "354")
		c.Want(t, harness.SmallMessage("a@example.com", id)+".", "250")
	}
	if n := len(g.Records("cannot take a client now, trying again")); n != 0 {
		t.Errorf("%d times there was no descriptor for a client", n)
	}
	harness.WantOnce(t, sink, sent)
	for _, c := range crowd {
		c.Close()
	}

	// A successor raises its limit, too, and a reload computes the limits again.
	g.HandOver()
	wantLimit()
	s.Keys["listen"] = "max_connections = 200"
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	g.WaitRecord("limits on connections (0: none)", "max_connections", "200")
	g.WaitRecord("max_connections is more than the process has file descriptors for: 200 connections can take 560, and it may open 300; " +
		"raise the limit (LimitNOFILE= in the unit, or ulimit -n), or write a smaller max_connections")
	g.Stop()
	g.WantEnded(2)
}
