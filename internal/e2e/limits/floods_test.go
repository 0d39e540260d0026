package limits

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// Clients of the floods: flooder and neighbour are in one network of 256 addresses,
// bystander is in another.
const (
	flooder   = "127.0.2.1"
	neighbour = "127.0.2.2"
	bystander = "127.0.3.1"
)

// noNames keeps the gate from looking up the names of its clients: they have too many
// addresses here.
const noNames = `identity = "none"`

// connectFrom connects from an address and reads nothing.
func connectFrom(t testing.TB, addr, from string) *harness.Client {
	t.Helper()
	conn, err := harness.DialFrom(addr, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return harness.NewClient(conn)
}

// wantServed checks that the gate serves a client that has no part in a flood.
func wantServed(t testing.TB, addr string, sink *smtptest.Sink) {
	t.Helper()
	wantServedAs(t, addr, bystander, sink)
}

func wantServedAs(t testing.TB, addr, from string, sink *smtptest.Sink) {
	t.Helper()
	before := len(sink.Messages())
	c := harness.MustDialFrom(t, addr, from)
	if reply := c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "bystander")); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the bystander's message is answered with %q", reply)
	}
	c.Want(t, "QUIT", "221")
	if n := len(sink.Messages()); n != before+1 {
		t.Errorf("%d messages have arrived from the bystander, want 1", n-before)
	}
}

// TestFloods has one address, or two of one network, exceed a limit. The client gets the
// reason, the log has it, and others are served. A PROXY header names each client.
func TestFloods(t *testing.T) {
	t.Parallel()
	const (
		flooder   = "192.0.2.1"
		neighbour = "192.0.2.2"
		bystander = "198.51.100.1"

		tooManyConnections = "421 4.7.0 Too many connections from your "
		tooManyErrors      = "421 4.7.0 Too many errors from your "
	)
	// Each client exceeds the limit of 2 by one.
	connections := func(t *testing.T, addr, second string) string {
		first := harness.MustDialFrom(t, addr, flooder)
		harness.MustDialFrom(t, addr, second)
		c := connectFrom(t, addr, second)
		c.WantReply(t, tooManyConnections)
		c.WantClosed(t)
		last := c.LocalAddr().String()
		// When one of them is gone, and the gate has noticed, another is let in.
		first.Want(t, "QUIT", "221")
		first.WantClosed(t)
		waitGreeted(t, addr, second)
		return last
	}
	connectionRate := func(t *testing.T, addr, second string) string {
		for _, from := range []string{flooder, second} {
			harness.MustDialFrom(t, addr, from).Want(t, "QUIT", "221")
		}
		c := connectFrom(t, addr, second)
		c.WantReply(t, tooManyConnections)
		c.WantClosed(t)
		return c.LocalAddr().String()
	}
	messages := func(t *testing.T, addr, second string) string {
		harness.MustDialFrom(t, addr, flooder).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "first"))
		c := harness.MustDialFrom(t, addr, second)
		c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "second"))
		c.Want(t, "MAIL FROM:<a@example.com>", "451 4.7.1 Too many messages from your ")
		c.Want(t, "NOOP", "250")
		return c.LocalAddr().String()
	}
	recipients := func(t *testing.T, addr, second string) string {
		c := harness.MustDialFrom(t, addr, flooder)
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<b@example.net>", "250")
		d := harness.MustDialFrom(t, addr, second)
		d.Want(t, "MAIL FROM:<a@example.com>", "250")
		d.Want(t, "RCPT TO:<b@example.net>", "250")
		d.Want(t, "RCPT TO:<c@example.net>", "452 4.5.3 Too many recipients from your ")
		// The accepted recipient gets the message.
		d.Want(t, "DATA", "354")
		d.Want(t, harness.SmallMessage("a@example.com", "one")+".", "250")
		return d.LocalAddr().String()
	}
	errors := func(t *testing.T, addr, second string) string {
		harness.MustDialFrom(t, addr, flooder).Want(t, "WHAT", "500")
		c := harness.MustDialFrom(t, addr, second)
		c.Want(t, "WHAT", "500")
		c.Want(t, "WHAT", tooManyErrors)
		c.WantClosed(t)
		last := c.LocalAddr().String()
		// The gate does not let it in again soon.
		connectFrom(t, addr, second).WantReply(t, tooManyErrors)
		return last
	}
	for _, f := range []struct {
		limit string // in the log, after client_ or network_
		do    func(t *testing.T, addr, second string) (last string)
	}{
		{"connections", connections},
		{"connections_per_minute", connectionRate},
		{"messages_per_minute", messages},
		{"recipients_per_minute", recipients},
		{"errors_per_minute", errors},
	} {
		for scope, second := range map[string]string{"client": flooder, "network": neighbour} {
			t.Run(scope+"_"+f.limit, func(t *testing.T) {
				t.Parallel()
				sink := smtptest.NewSink(t)
				keys := map[string]string{
					"listen":   fmt.Sprintf("%s_%s = 2\nproxy_protocol = [%q]", scope, f.limit, harness.ProxyAddr),
					"next_hop": noNames,
				}
				g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: keys})
				last := f.do(t, g.Addr, second)
				key := scope + "_" + f.limit
				r := g.WaitRecord("limited", "limit", f.limit, "of", scope, "value", "2", "key", key, "client", last)
				if hint := r.Text("hint"); !strings.Contains(hint, "limits_exempt") || !strings.Contains(hint, key+" = 4") {
					t.Errorf("the log says what to do: %q", hint)
				}
				wantServedAs(t, g.Addr, bystander, sink)
			})
		}
	}
}

// waitGreeted connects until the gate greets.
func waitGreeted(t testing.TB, addr, from string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(harness.ReplyTimeout); ; <-tick.C {
		c := connectFrom(t, addr, from)
		reply, err := c.Reply()
		c.Close()
		if err == nil && strings.HasPrefix(reply, "220 ") {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s still hears %q, %v", from, reply, err)
		}
	}
}

// TestFloodOfAll reaches the limit for all clients together. Then only exempt clients
// get in.
func TestFloodOfAll(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	keys := map[string]string{
		"listen":   fmt.Sprintf("max_connections = 3\nlimits_exempt = [%q]", bystander),
		"next_hop": noNames,
	}
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: keys})
	for _, from := range []string{flooder, neighbour, "127.0.4.1"} {
		harness.MustDialFrom(t, g.Addr, from)
	}
	c := connectFrom(t, g.Addr, "127.0.5.1")
	c.WantReply(t, "421 4.7.0 Too many connections at this server")
	c.WantClosed(t)
	g.WaitRecord("limited", "limit", "connections", "of", "all", "value", "3", "key", "max_connections", "client", c.LocalAddr().String())
	wantServed(t, g.Addr, sink)
}

// TestFloodInSession has a client that repeats a command on one connection.
func TestFloodInSession(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{
		"listen":   "max_errors = 3\nmax_refusals = 4",
		"next_hop": noNames,
		"log":      `level = "debug"`,
	}})
	for _, f := range []struct {
		lines []string // the last one is repeated
		reply string
		n     int // how many get that reply
		last  string
	}{
		{[]string{"WHAT"}, "500 ", 3, "421 4.7.0 Too many errors"},
		{[]string{"MAIL FROM:<x@spam.example>", "RCPT TO:<b@example.net>"}, "550 ", 4, "421 4.7.0 Too many refused commands"},
	} {
		c := harness.MustDialFrom(t, g.Addr, flooder)
		for _, line := range f.lines[:len(f.lines)-1] {
			c.Want(t, line, "250")
		}
		again := f.lines[len(f.lines)-1] + "\r\n"
		fmt.Fprint(c, strings.Repeat(again, f.n+10))
		for range f.n {
			c.WantReply(t, f.reply)
		}
		c.WantReply(t, f.last)
		c.WantClosed(t)
		g.WaitRecord("disconnected", "client", c.LocalAddr().String(), "reply", f.last)
		wantServed(t, g.Addr, sink)
	}
}
