package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/shipped"
	"spamgate/internal/smtptest"
)

// usualPerClient is the default of client_connections.
const usualPerClient = 50

// wantFewer opens as many connections of one client as the default allows. One more
// hears why not, the log says what to write, and another client is let in; that one
// is returned.
func wantFewer(t *testing.T, g *gate) *client {
	t.Helper()
	const crowded, other = "192.0.2.1", "192.0.2.2" // of one network
	for range usualPerClient {
		connectFrom(t, g.addr, crowded).wantReply(t, "220 ")
	}
	for range 3 {
		c := connectFrom(t, g.addr, crowded)
		c.wantReply(t, "421 4.7.0 Too many connections from your address")
		c.wantClosed(t)
		r := g.waitRecord("limited", "key", "client_connections", "value", fmt.Sprint(usualPerClient), "client", c.LocalAddr().String())
		if hint := r.string("hint"); !strings.Contains(hint, "limits_exempt") || !strings.Contains(hint, "client_connections = 100") {
			t.Errorf("the log says what to do: %q", hint)
		}
	}
	// Programs of this machine have one address for all of them.
	for range usualPerClient + 10 {
		connectFrom(t, g.addr, "127.0.0.2").wantReply(t, "220 ")
	}
	return mustDialFrom(t, g.addr, other)
}

// TestShippedConnections: with the configuration as it ships one client has at most
// 50 connections, and another one is served while it has them.
func TestShippedConnections(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	text := strings.Replace(shipped.Config(), `addr = "127.0.0.1:2525"`, fmt.Sprintf("addr = \"127.0.0.1:0\"\nproxy_protocol = [%q]", tellingProxy), 1)
	text = strings.Replace(text, `hostname = ""`, `hostname = "gate.example"`, 1)
	text = strings.Replace(text, `addr = "maildir:mail"`, fmt.Sprintf("addr = %q", "smtp://"+sink.Addr()), 1)
	text = strings.Replace(text, `format = "text"`, `format = "json"`, 1)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lists"), shipped.Lists()); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "config.toml"), text)
	g := launch(t, dir, exec.Command(binary(t), "serve"))
	g.addr = g.waitListening()
	g.waitRecord("limits on connections (0: none)", "max_connections", "1000", "client_connections", fmt.Sprint(usualPerClient))
	c := wantFewer(t, g)
	if reply := c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m0")); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the other client's message is answered with %q", reply)
	}
	wantOnce(t, sink, map[string]bool{"m0": true})
}

// TestExampleConnections is TestShippedConnections with the example for Postfix,
// before a real one.
func TestExampleConnections(t *testing.T) {
	t.Parallel()
	e := openExample(t, "postfix.toml")
	p := startPostfixService(t, e.in(e.lines("master.cf"), "127.0.0.1:10025 ", "ADDR:PORT "), everywhere)
	e.replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+p.addr))
	e.replace(`addr = "127.0.0.1:0"`, fmt.Sprintf("addr = \"127.0.0.1:0\"\nproxy_protocol = [%q]", tellingProxy))
	g := e.start()
	c := wantFewer(t, g)
	message := letter("a@example.com", "other")
	if reply := c.mustSend(t, "a@example.com", mailbox, message); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the other client's message is answered with %q", reply)
	}
	if mail := p.mail(); !strings.HasSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("the mail arrived changed:\n%q", mail)
	}
}

// TestConnectionsFitDescriptors: a gate that may open few files raises its soft
// limit, takes as many clients as it can serve, says so, and serves each of them
// with a connection to the next hop.
func TestConnectionsFitDescriptors(t *testing.T) {
	t.Parallel()
	// The Go runtime raises the soft limit to one less than the hard limit.
	const soft, hard, raised, room = 100, 301, 300, 70 // (300 - 128 - 32) / 2
	sink := smtptest.NewSink(t)
	dir := t.TempDir()
	s := setup{nextHop: "smtp://" + sink.Addr(), keys: map[string]string{"next_hop": noNames}}
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	script := fmt.Sprintf(`ulimit -Sn %d && ulimit -Hn %d && exec "$0" serve`, soft, hard)
	g := launchReaped(t, dir, nil, nil, "/bin/sh", "-c", script, binary(t))
	g.addr = g.waitListening()
	wantLimit := func() {
		t.Helper()
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", g.process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), fmt.Sprintf("Max open files %d %d files", raised, hard)) {
			t.Errorf("the limits of the process are\n%s", limits)
		}
	}
	wantLimit()
	g.waitRecord("limits on connections (0: none)", "max_connections", fmt.Sprint(room), "descriptors", fmt.Sprint(raised))
	g.waitRecord(fmt.Sprintf(`max_connections = "auto" is only %d for each listener, since the process may open %d files; `+
		`raise the limit (LimitNOFILE= in the unit, or ulimit -n): 2160 is enough for 1000`, room, raised))

	var crowd []*client
	for range room {
		c := mustDialFrom(t, g.addr, "127.0.0.2")
		crowd = append(crowd, c)
	}
	late := connectFrom(t, g.addr, "127.0.0.3")
	late.wantReply(t, "421 4.7.0 Too many connections at this server")
	r := g.waitRecord("limited", "key", "max_connections", "value", fmt.Sprint(room))
	if hint := r.string("hint"); !strings.Contains(hint, "max_connections = 140") || !strings.Contains(hint, "descriptors") {
		t.Errorf("the log says what to do: %q", hint)
	}
	sent := map[string]bool{}
	for _, c := range crowd { // each has a connection to the next hop from here on
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<b@example.net>", "250")
	}
	for i, c := range crowd {
		id := fmt.Sprintf("m%d", i)
		sent[id] = true
		c.want(t, "DATA", "354")
		c.want(t, letter("a@example.com", id)+".", "250")
	}
	if n := len(g.records("cannot take a client now, trying again")); n != 0 {
		t.Errorf("%d times there was no descriptor for a client", n)
	}
	wantOnce(t, sink, sent)
	for _, c := range crowd {
		c.Close()
	}

	// A successor raises its limit, too, and a reload counts anew.
	g.handOver()
	wantLimit()
	s.keys["listen"] = "max_connections = 200"
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	g.signal(syscall.SIGHUP)
	g.waitRecord("reloaded")
	g.waitRecord("limits on connections (0: none)", "max_connections", "200")
	g.waitRecord("max_connections is more than the process has file descriptors for: 200 connections can take 560, and it may open 300; " +
		"raise the limit (LimitNOFILE= in the unit, or ulimit -n), or write a smaller max_connections")
	g.stop()
	g.wantEnded(2)
}
