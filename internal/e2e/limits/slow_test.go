package limits

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// drip sends a text again and again, one byte at a time, until the connection fails.
func drip(c *harness.Client, text string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
			return
		}
		<-tick.C
	}
}

// TestSlowClients has a hundred clients of one address: half of them send a byte now and
// then and never finish a command, and half are silent in a message.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{
		"listen":   "command_timeout = \"1s\"\ndata_timeout = \"1s\"\nclient_connections = 100",
		"next_hop": noNames,
		"log":      `level = "debug"`,
	}})
	var slow []*harness.Client
	for i := range 100 {
		// They send at once all that has to be in time: the timeout is a second.
		c := connectFrom(t, g.Addr, flooder)
		if i%2 == 0 {
			go drip(c, "NOOP ")
		} else {
			fmt.Fprint(c, "EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nSubject: x\r\n")
		}
		slow = append(slow, c)
	}
	wantServedInTime(t, g.Addr, 1, sink)
	const tooLong = "421 4.4.2 gate.example waited too long"
	for i, c := range slow {
		c.WantReply(t, "220 ")
		if i%2 == 1 {
			for _, want := range []string{"250", "250", "250", "354"} {
				c.WantReply(t, want)
			}
		}
		c.WantReply(t, "421 4.4.2 ")
		c.WantClosed(t)
	}
	g.WaitRecord("disconnected", "client", slow[0].LocalAddr().String(), "reply", tooLong+", closing the connection")
	wantServedInTime(t, g.Addr, 2, sink)
}

// wantServedInTime checks that a gate with short timeouts serves the bystander, who
// tries again if a busy machine makes it too slow, and that there are that many messages
// then.
func wantServedInTime(t testing.TB, addr string, messages int, sink *smtptest.Sink) {
	t.Helper()
	harness.WaitFor(t, "the bystander to be served", func() bool {
		var reply string
		c, err := harness.Dial(addr, bystander)
		if err == nil {
			defer c.Close()
			reply, err = c.Send("a@example.com", "b@example.net", []byte(harness.SmallMessage("a@example.com", "bystander")))
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

// TestSlowMessage has clients that send a message one byte at a time. It takes more than
// a minute, since min_data_rate counts only after a minute. The package wire has the
// same test with a fake clock.
func TestSlowMessage(t *testing.T) {
	if os.Getenv(harness.FullEnv) == "" {
		t.Skipf("takes a minute; %s=1 runs it", harness.FullEnv)
	}
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{"next_hop": noNames}})
	slow := []*harness.Client{harness.MustDialFrom(t, g.Addr, flooder), harness.MustDialFrom(t, g.Addr, neighbour)}
	for i, c := range slow {
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<b@example.net>", "250")
		if i == 0 {
			c.Want(t, "DATA", "354")
		} else {
			fmt.Fprint(c, "BDAT 1000000 LAST\r\n")
		}
		go drip(c, "Subject: x\r\n")
	}
	wantServed(t, g.Addr, sink)
	for _, c := range slow {
		var line string
		var err error
		for late := time.Now().Add(3 * harness.ReplyTimeout); line == "" && time.Now().Before(late); {
			line, err = c.Reply()
		}
		if !strings.HasPrefix(line, "421 4.4.2 ") {
			t.Errorf("heard %q, %v", line, err)
		}
	}
	if n := len(sink.Messages()); n != 1 {
		t.Errorf("%d messages, want the bystander's", n)
	}
}

// TestTarpit refuses three clients when only one refusal may be delayed at a time. That
// one is delayed until the gate stops.
func TestTarpit(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{
		"listen":   "tarpit = \"5m\"\ntarpit_max = 1",
		"next_hop": noNames,
	}})
	heard := make(chan string, 3)
	for range 3 {
		c := harness.MustDialFrom(t, g.Addr, flooder)
		c.Want(t, "MAIL FROM:<x@spam.example>", "250")
		go func() {
			reply, err := c.Ask("RCPT TO:<b@example.net>")
			c.Close() // the gate would wait for an open transaction
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
	wantServed(t, g.Addr, sink)
	select {
	case reply := <-heard:
		t.Errorf("not held back: %q", reply)
	default:
	}
	g.Signal(syscall.SIGTERM)
	next()
	if code := g.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTarpitEnds checks that a delayed refusal comes in the end, followed by the replies
// to later commands.
func TestTarpitEnds(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Keys: map[string]string{"listen": `tarpit = "100ms"`}})
	c := harness.MustDialFrom(t, g.Addr, flooder)
	fmt.Fprint(c, "MAIL FROM:<x@spam.example>\r\nRCPT TO:<b@example.net>\r\nRSET\r\nNOOP\r\n")
	for _, want := range []string{"250 2.1.0", "550 5.7.1", "250", "250"} {
		c.WantReply(t, want)
	}
}

// TestGreetingDelay has clients that send before the greeting, and one that waits for
// it.
func TestGreetingDelay(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, delay, pregreet string) (*harness.Gate, *smtptest.Sink) {
		sink := smtptest.NewSink(t)
		return harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{
			"listen":   fmt.Sprintf("greeting_delay = %q\npregreet = %q", delay, pregreet),
			"next_hop": noNames,
		}}), sink
	}
	// A delay of a minute is longer than ReplyTimeout: these two get a reply because they
	// send something.
	t.Run("reject", func(t *testing.T) {
		t.Parallel()
		g, _ := start(t, "1m", "reject")
		c := connectFrom(t, g.Addr, flooder)
		fmt.Fprint(c, "EHLO client.example\r\n")
		c.WantReply(t, "554 5.5.0 Wait for the greeting before you talk")
		c.WantClosed(t)
		g.WaitRecord("noticed", "client", c.LocalAddr().String(), "what", "talks before the greeting")
		g.WaitRecord("disconnected", "client", c.LocalAddr().String(), "reply", "554 5.5.0 Wait for the greeting before you talk")
	})
	t.Run("log", func(t *testing.T) {
		t.Parallel()
		g, _ := start(t, "1m", "log")
		c := connectFrom(t, g.Addr, flooder)
		fmt.Fprint(c, "EHLO client.example\r\n")
		c.WantReply(t, "220 ")
		c.WantReply(t, "250-gate.example\n")
		g.WaitRecord("noticed", "client", c.LocalAddr().String(), "what", "talks before the greeting")
	})
	t.Run("patient", func(t *testing.T) {
		t.Parallel()
		g, sink := start(t, "100ms", "reject")
		wantServed(t, g.Addr, sink)
		if n := len(g.Records("noticed")); n != 0 {
			t.Errorf("%d lines about a client that waits", n)
		}
	})
}
