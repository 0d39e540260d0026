package e2e

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// Clients of the floods. The flooder and its neighbour are in one network of
// 256 addresses, the bystander is in another.
const (
	flooder   = "127.0.2.1"
	neighbour = "127.0.2.2"
	bystander = "127.0.3.1"
)

// noNames has the gate not look up the names of its clients, who come from more
// addresses here than a name server should be asked for.
const noNames = `identity = "none"`

// connectFrom connects from an address, and says nothing.
func connectFrom(t testing.TB, addr, from string) *client {
	t.Helper()
	conn, err := dialAs(addr, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn, bufio.NewReader(conn)}
}

// wantReply wants the next reply to begin with a text.
func (c *client) wantReply(t testing.TB, prefix string) {
	t.Helper()
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, prefix) {
		t.Fatalf("%s heard %q, %v; want %q", c.LocalAddr(), reply, err, prefix)
	}
}

// wantClosed wants the gate to have hung up.
func (c *client) wantClosed(t testing.TB) {
	t.Helper()
	if reply, err := c.reply(); err == nil {
		t.Errorf("%s is still connected, and heard %q", c.LocalAddr(), reply)
	}
}

// wantServed wants a client that has nothing to do with a flood to be served.
func wantServed(t testing.TB, addr string, sink *smtptest.Sink) {
	t.Helper()
	wantServedAs(t, addr, bystander, sink)
}

func wantServedAs(t testing.TB, addr, from string, sink *smtptest.Sink) {
	t.Helper()
	before := len(sink.Messages())
	c := mustDialFrom(t, addr, from)
	if reply := c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "bystander")); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the bystander's message is answered with %q", reply)
	}
	c.want(t, "QUIT", "221")
	if n := len(sink.Messages()); n != before+1 {
		t.Errorf("%d messages have arrived from the bystander, want 1", n-before)
	}
}

// TestFloods has one address, or two of one network, do too much of something.
// They hear so, the log has it, and others are served. All are clients that a
// proxy names.
func TestFloods(t *testing.T) {
	t.Parallel()
	const (
		flooder   = "192.0.2.1"
		neighbour = "192.0.2.2"
		bystander = "198.51.100.1"

		tooManyConnections = "421 4.7.0 Too many connections from your "
		tooManyErrors      = "421 4.7.0 Too many errors from your "
	)
	// Each does one thing more than the limit of 2.
	connections := func(t *testing.T, addr, second string) string {
		first := mustDialFrom(t, addr, flooder)
		mustDialFrom(t, addr, second)
		c := connectFrom(t, addr, second)
		c.wantReply(t, tooManyConnections)
		c.wantClosed(t)
		last := c.LocalAddr().String()
		// With one of them gone there is room; the gate has to notice that first.
		first.want(t, "QUIT", "221")
		first.wantClosed(t)
		waitGreeted(t, addr, second)
		return last
	}
	connectionRate := func(t *testing.T, addr, second string) string {
		for _, from := range []string{flooder, second} {
			mustDialFrom(t, addr, from).want(t, "QUIT", "221")
		}
		c := connectFrom(t, addr, second)
		c.wantReply(t, tooManyConnections)
		c.wantClosed(t)
		return c.LocalAddr().String()
	}
	messages := func(t *testing.T, addr, second string) string {
		mustDialFrom(t, addr, flooder).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "first"))
		c := mustDialFrom(t, addr, second)
		c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "second"))
		c.want(t, "MAIL FROM:<a@example.com>", "451 4.7.1 Too many messages from your ")
		c.want(t, "NOOP", "250")
		return c.LocalAddr().String()
	}
	recipients := func(t *testing.T, addr, second string) string {
		c := mustDialFrom(t, addr, flooder)
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<b@example.net>", "250")
		d := mustDialFrom(t, addr, second)
		d.want(t, "MAIL FROM:<a@example.com>", "250")
		d.want(t, "RCPT TO:<b@example.net>", "250")
		d.want(t, "RCPT TO:<c@example.net>", "452 4.5.3 Too many recipients from your ")
		// The recipient that was taken gets the message.
		d.want(t, "DATA", "354")
		d.want(t, letter("a@example.com", "one")+".", "250")
		return d.LocalAddr().String()
	}
	errors := func(t *testing.T, addr, second string) string {
		mustDialFrom(t, addr, flooder).want(t, "WHAT", "500")
		c := mustDialFrom(t, addr, second)
		c.want(t, "WHAT", "500")
		c.want(t, "WHAT", tooManyErrors)
		c.wantClosed(t)
		last := c.LocalAddr().String()
		// And it is not let in again so soon.
		connectFrom(t, addr, second).wantReply(t, tooManyErrors)
		return last
	}
	for _, f := range []struct {
		limit string // in the log; the keys are client_ and network_ with it
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
					"listen":   fmt.Sprintf("%s_%s = 2\nproxy_protocol = [%q]", scope, f.limit, tellingProxy),
					"next_hop": noNames,
				}
				g := startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: keys})
				last := f.do(t, g.addr, second)
				key := scope + "_" + f.limit
				r := g.waitRecord("limited", "limit", f.limit, "of", scope, "value", "2", "key", key, "client", last)
				if hint := r.string("hint"); !strings.Contains(hint, "limits_exempt") || !strings.Contains(hint, key+" = 4") {
					t.Errorf("the log says what to do: %q", hint)
				}
				wantServedAs(t, g.addr, bystander, sink)
			})
		}
	}
}

// waitGreeted connects until the greeting is one.
func waitGreeted(t testing.TB, addr, from string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(waitLimit); ; <-tick.C {
		c := connectFrom(t, addr, from)
		reply, err := c.reply()
		c.Close()
		if err == nil && strings.HasPrefix(reply, "220 ") {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s still hears %q, %v", from, reply, err)
		}
	}
}

// TestFloodOfAll reaches the limit for all clients together. Only those who are
// exempt get in then.
func TestFloodOfAll(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	keys := map[string]string{
		"listen":   fmt.Sprintf("max_connections = 3\nlimits_exempt = [%q]", bystander),
		"next_hop": noNames,
	}
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: keys})
	for _, from := range []string{flooder, neighbour, "127.0.4.1"} {
		mustDialFrom(t, g.addr, from)
	}
	c := connectFrom(t, g.addr, "127.0.5.1")
	c.wantReply(t, "421 4.7.0 Too many connections at this server")
	c.wantClosed(t)
	g.waitRecord("limited", "limit", "connections", "of", "all", "value", "3", "key", "max_connections", "client", c.LocalAddr().String())
	wantServed(t, g.addr, sink)
}

// TestFloodInSession has a client that does not stop on one connection.
func TestFloodInSession(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: map[string]string{
		"listen":   "max_errors = 3\nmax_refusals = 4",
		"next_hop": noNames,
		"log":      `level = "debug"`,
	}})
	for _, f := range []struct {
		lines []string // the last of them again and again
		reply string
		n     int // how many are answered
		last  string
	}{
		{[]string{"WHAT"}, "500 ", 3, "421 4.7.0 Too many errors"},
		{[]string{"MAIL FROM:<x@spam.example>", "RCPT TO:<b@example.net>"}, "550 ", 4, "421 4.7.0 Too many refused commands"},
	} {
		c := mustDialFrom(t, g.addr, flooder)
		for _, line := range f.lines[:len(f.lines)-1] {
			c.want(t, line, "250")
		}
		again := f.lines[len(f.lines)-1] + "\r\n"
		fmt.Fprint(c, strings.Repeat(again, f.n+10))
		for range f.n {
			c.wantReply(t, f.reply)
		}
		c.wantReply(t, f.last)
		c.wantClosed(t)
		g.waitRecord("disconnected", "client", c.LocalAddr().String(), "reply", f.last)
		wantServed(t, g.addr, sink)
	}
}

// drip sends a text over and over, a byte at a time, until it can't any more.
func (c *client) drip(text string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
			return
		}
		<-tick.C
	}
}

// TestSlowClients has a hundred clients of one address that are never silent for
// long and never come to an end, and others that are silent inside a message.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: map[string]string{
		"listen":   "command_timeout = \"1s\"\ndata_timeout = \"1s\"\nclient_connections = 100",
		"next_hop": noNames,
		"log":      `level = "debug"`,
	}})
	var slow []*client
	for i := range 100 {
		// They say at once all that they say in time, since a second passes soon.
		c := connectFrom(t, g.addr, flooder)
		if i%2 == 0 {
			go c.drip("NOOP ")
		} else {
			fmt.Fprint(c, "EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nSubject: x\r\n")
		}
		slow = append(slow, c)
	}
	wantServedInTime(t, g.addr, 1, sink)
	const tooLong = "421 4.4.2 gate.example waited too long"
	for i, c := range slow {
		c.wantReply(t, "220 ")
		if i%2 == 1 {
			for _, want := range []string{"250", "250", "250", "354"} {
				c.wantReply(t, want)
			}
		}
		c.wantReply(t, "421 4.4.2 ")
		c.wantClosed(t)
	}
	g.waitRecord("disconnected", "client", slow[0].LocalAddr().String(), "reply", tooLong+", closing the connection")
	wantServedInTime(t, g.addr, 2, sink)
}

// wantServedInTime wants the bystander to be served by a gate that soon loses its
// patience: a bystander who was too slow on a busy machine comes again. There have
// to be so many messages then.
func wantServedInTime(t testing.TB, addr string, messages int, sink *smtptest.Sink) {
	t.Helper()
	pollFor(t, "the bystander to be served", func() bool {
		var reply string
		c, err := dial(addr, bystander)
		if err == nil {
			defer c.Close()
			reply, err = c.send("a@example.com", "b@example.net", []byte(letter("a@example.com", "bystander")))
		}
		if strings.Contains(fmt.Sprintf("%s %v", reply, err), "421 4.4.2 ") {
			return false
		}
		if err != nil || !strings.HasPrefix(reply, "250 ") {
			t.Fatalf("the bystander's message is answered with %q, %v", reply, err)
		}
		return true
	})
	if n := len(sink.Messages()); n != messages {
		t.Errorf("%d messages, want the bystander's %d", n, messages)
	}
}

// TestSlowMessage has clients that drip a message. They have a minute before
// min_data_rate counts, so this takes longer than others; the wire package has
// the same with a clock of its own.
func TestSlowMessage(t *testing.T) {
	if os.Getenv(fullEnv) == "" {
		t.Skipf("takes a minute; %s=1 runs it", fullEnv)
	}
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: map[string]string{"next_hop": noNames}})
	slow := []*client{mustDialFrom(t, g.addr, flooder), mustDialFrom(t, g.addr, neighbour)}
	for i, c := range slow {
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<b@example.net>", "250")
		if i == 0 {
			c.want(t, "DATA", "354")
		} else {
			fmt.Fprint(c, "BDAT 1000000 LAST\r\n")
		}
		go c.drip("Subject: x\r\n")
	}
	wantServed(t, g.addr, sink)
	for _, c := range slow {
		var line string
		var err error
		for late := time.Now().Add(3 * waitLimit); line == "" && time.Now().Before(late); {
			line, err = c.reply()
		}
		if !strings.HasPrefix(line, "421 4.4.2 ") {
			t.Errorf("heard %q, %v", line, err)
		}
	}
	if n := len(sink.Messages()); n != 1 {
		t.Errorf("%d messages, want the bystander's", n)
	}
}

// TestTarpit has three clients be refused where only one refusal is held back at
// a time. It is held back until the gate is told to stop.
func TestTarpit(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: map[string]string{
		"listen":   "tarpit = \"5m\"\ntarpit_max = 1",
		"next_hop": noNames,
	}})
	heard := make(chan string, 3)
	for range 3 {
		c := mustDialFrom(t, g.addr, flooder)
		c.want(t, "MAIL FROM:<x@spam.example>", "250")
		go func() {
			reply, err := c.ask("RCPT TO:<b@example.net>")
			c.Close() // an open transaction would be waited for
			heard <- fmt.Sprintf("%s %v", reply, err)
		}()
	}
	const refused = "550 5.7.1 <x@spam.example> refused: list blocked (unsolicited mail)"
	next := func() {
		t.Helper()
		if reply := <-heard; !strings.HasPrefix(reply, refused) {
			t.Errorf("heard %q", reply)
		}
	}
	next()
	next()
	wantServed(t, g.addr, sink)
	select {
	case reply := <-heard:
		t.Errorf("not held back: %q", reply)
	default:
	}
	g.signal(syscall.SIGTERM)
	next()
	if code := g.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTarpitEnds has a refusal come in the end, with everything that was said
// behind it.
func TestTarpitEnds(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{keys: map[string]string{"listen": `tarpit = "100ms"`}})
	c := mustDialFrom(t, g.addr, flooder)
	fmt.Fprint(c, "MAIL FROM:<x@spam.example>\r\nRCPT TO:<b@example.net>\r\nRSET\r\nNOOP\r\n")
	for _, want := range []string{"250 2.1.0", "550 5.7.1", "250", "250"} {
		c.wantReply(t, want)
	}
}

// TestGreetingDelay has clients that talk before a greeting, and one that waits
// for it.
func TestGreetingDelay(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, delay, pregreet string) (*gate, *smtptest.Sink) {
		sink := smtptest.NewSink(t)
		return startGate(t, setup{nextHop: "smtp://" + sink.Addr(), keys: map[string]string{
			"listen":   fmt.Sprintf("greeting_delay = %q\npregreet = %q", delay, pregreet),
			"next_hop": noNames,
		}}), sink
	}
	// A minute is longer than any reply here is waited for: these two hear
	// something because they talk.
	t.Run("reject", func(t *testing.T) {
		t.Parallel()
		g, _ := start(t, "1m", "reject")
		c := connectFrom(t, g.addr, flooder)
		fmt.Fprint(c, "EHLO client.example\r\n")
		c.wantReply(t, "554 5.5.0 Wait for the greeting before you talk")
		c.wantClosed(t)
		g.waitRecord("noticed", "client", c.LocalAddr().String(), "what", "talks before the greeting")
		g.waitRecord("disconnected", "client", c.LocalAddr().String(), "reply", "554 5.5.0 Wait for the greeting before you talk")
	})
	t.Run("log", func(t *testing.T) {
		t.Parallel()
		g, _ := start(t, "1m", "log")
		c := connectFrom(t, g.addr, flooder)
		fmt.Fprint(c, "EHLO client.example\r\n")
		c.wantReply(t, "220 ")
		c.wantReply(t, "250-gate.example\n")
		g.waitRecord("noticed", "client", c.LocalAddr().String(), "what", "talks before the greeting")
	})
	t.Run("patient", func(t *testing.T) {
		t.Parallel()
		g, sink := start(t, "100ms", "reject")
		wantServed(t, g.addr, sink)
		if n := len(g.records("noticed")); n != 0 {
			t.Errorf("%d lines about a client that waits", n)
		}
	})
}
