package servers

import (
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// gateReceived matches the gate's own trace field, as Postfix stores it.
var gateReceived = regexp.MustCompile(`^Received: from client\.example \((?:[^ ()]+ )?\[127\.0\.0\.2\]\)\n\tby gate\.example with ESMTP id [A-Z2-7]{12};\n\t[^\n]*\n`)

// TestPostfixDelivers sends a listed sender's and a clean message through a gate to
// Postfix, and reads the mail and the logs of both.
func TestPostfixDelivers(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Files: map[string]string{
		"blocked.txt": "bulk.example  # bought addresses ## told by phone\n",
	}})

	// The address differs from the gate's, so Postfix's log shows which one it has.
	c := harness.MustDialFrom(t, g.Addr, "127.0.0.2")
	c.Want(t, "MAIL FROM:<x@news.bulk.example>", "250")
	reply := c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "550")
	id := harness.WantRefusal(t, reply, "x@news.bulk.example", "blocked", "bought addresses")
	if r := g.WaitRecord("refused"); r.Text("id") != id || r.Text("list") != "blocked" || !strings.HasSuffix(r.Text("source"), "blocked.txt:1") {
		t.Errorf("the log's line of id %s: %v", id, r)
	}
	c.Want(t, "RSET", "250")

	// All that must arrive unchanged: dots, 8-bit bytes, a long line, trailing space,
	// control characters, empty lines before the end.
	message := harness.SmallMessage("a@example.com", "clean") +
		".\r\n..\r\n...a\r\n" + strings.Repeat("long ", 5000) + "\r\n" +
		"8-bit \xe4\xf6\xfc \xff\x80 \x01\x1b\x7f\r\ntab\t \r\n\r\n\r\nFrom the end\r\n"
	reply = c.MustSend(t, "a@example.com", harness.Mailbox, message)
	m := regexp.MustCompile(`^250 2\.0\.0 Ok: [0-9]+ bytes queued as ([0-9A-Za-z]+)$`).FindStringSubmatch(reply)
	if m == nil {
		t.Fatalf("the client heard %q, want Postfix's own words", reply)
	}
	queueID := m[1]
	p.WaitLog(1, queueID, "status=sent")

	// Postfix adds Return-Path, X-Original-To, Delivered-To and Received.
	mail := p.OneMail("you")
	trace, ok := strings.CutSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n"))
	if !ok {
		t.Errorf("the mail arrived changed:\n%.2000q", mail)
	}
	_, ours, _ := strings.Cut(trace, "(UTC)\n")
	if !gateReceived.MatchString(ours) || gateReceived.ReplaceAllString(ours, "") != "" {
		t.Errorf("between Postfix's trace fields and the message: %q", ours)
	}

	// By XFORWARD Postfix's log has the client's address, its HELO and the gate's id. The
	// client's name depends on the machine's resolver.
	r := g.WaitRecord("accepted")
	line := p.WaitLog(1, queueID+": client=")
	if !strings.Contains(line, "[127.0.0.1], orig_queue_id="+r.Text("id")+", orig_client=") || !strings.HasSuffix(line, "[127.0.0.2]\n") {
		t.Errorf("Postfix logged %q, want the gate's client 127.0.0.2 and the id %s", line, r.Text("id"))
	}
	line = p.WaitLog(1, queueID+": info: header Subject: clean")
	if !strings.Contains(line, "[127.0.0.2]; ") || !strings.HasSuffix(line, "proto=ESMTP helo=<client.example>\n") {
		t.Errorf("Postfix logged %q, want the client 127.0.0.2 and its HELO", line)
	}
	if !strings.Contains(r.Text("next_hop"), queueID) {
		t.Errorf("the gate logged %v, want Postfix's queue id", r)
	}
	// Postfix logs the number of commands at the end of a connection. Connections without
	// RCPT are the gate's probes.
	g.Stop()
	harness.SettledPostfix(t, p)
	lines := p.LogLines("disconnect from", " rcpt=")
	if len(lines) != 1 || !strings.Contains(lines[0], " rcpt=1 bdat=1 ") {
		t.Errorf("Postfix logged %q, want one transaction: a listed sender costs it nothing", lines)
	}
}

// TestPostfixRefuses checks that the client gets Postfix's own reply to an unknown
// recipient.
func TestPostfixRefuses(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr})
	direct := harness.MustDialFrom(t, p.Addr, "127.0.0.3")
	through := harness.MustDialFrom(t, g.Addr, "127.0.0.2")

	for _, c := range []*harness.Client{direct, through} {
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
	}
	const rcpt = "RCPT TO:<nobody@example.org>"
	want := direct.Want(t, rcpt, "550")
	if got := through.Want(t, rcpt, "550"); got != want {
		t.Errorf("through the gate %q, from Postfix %q", got, want)
	}
	// The transaction goes on with a recipient that exists.
	through.Want(t, "RCPT TO:<"+harness.Mailbox+">", "250 2.1.5")
	through.Want(t, "DATA", "354")
	through.Want(t, "Subject: x\r\n\r\n.", "250 2.0.0 Ok: ")
}

// TestPostfixNeverSeesListedHeader checks that Postfix gets no byte of a message with a
// listed sender in its header.
func TestPostfixNeverSeesListedHeader(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, NoReuse: true})

	c := harness.MustDial(t, g.Addr)
	reply := c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("x@spam.example", "listed"))
	harness.WantRefusal(t, reply, "x@spam.example", "blocked", "unsolicited mail")
	// Postfix logs the number of commands at the end of a connection, and a lost connection
	// on the line before. Connections without RCPT are the gate's probes.
	line := p.WaitLog(1, "disconnect from", " rcpt=")
	if !strings.Contains(line, "rcpt=1") || strings.Contains(line, "data") || strings.Contains(line, "bdat") {
		t.Errorf("Postfix logged %q, want RCPT, and no message", line)
	}

	c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "clean"))
	if line := p.WaitLog(2, "disconnect from", " rcpt="); !strings.Contains(line, "bdat=1") {
		t.Errorf("Postfix logged %q, want BDAT", line)
	}
}

// TestRelayCheck opens a gate to other machines. It opens only if nobody can relay
// through it. All traffic of the test stays on loopback.
func TestRelayCheck(t *testing.T) {
	t.Parallel()
	trusting := harness.StartPostfix(t, harness.Everywhere)
	strict := harness.StartPostfix(t, harness.Nowhere)
	const public = "0.0.0.0:0"
	const domains = "[policy]\nrecipient_domains = [\"example.org\"]\n"

	t.Run("open relay", func(t *testing.T) {
		g := harness.LaunchGate(t, harness.Setup{Listen: public, NextHop: "smtp://" + trusting.Addr})
		if code := g.Wait(); code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		message := g.Log.String()
		for _, text := range []string{"relays for the gate", "relay-test@example.net", "recipient_domains", "mynetworks"} {
			if !strings.Contains(message, text) {
				t.Errorf("it said nothing of %q", text)
			}
		}
		if strings.Contains(message, `"listening"`) {
			t.Error("it listened")
		}
	})
	t.Run("next hop does not relay", func(t *testing.T) {
		g := harness.StartGate(t, harness.Setup{Listen: public, NextHop: "smtp://" + strict.Addr})
		g.WaitRecord("the next hop does not relay for the gate")
		deliverPublic(t, g)
	})
	t.Run("recipient domains", func(t *testing.T) {
		g := harness.StartGate(t, harness.Setup{Listen: public, NextHop: "smtp://" + trusting.Addr, Tables: domains})
		c := deliverPublic(t, g)
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<relay-test@example.net>", "550 5.7.1")
	})
	t.Run("public maildir", func(t *testing.T) {
		g := harness.LaunchGate(t, harness.Setup{Listen: public})
		if code := g.Wait(); code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		if !strings.Contains(g.Log.String(), "allow_public") {
			t.Error("it did not say what to do")
		}
	})
	t.Run("loopback is not asked about", func(t *testing.T) {
		g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + trusting.Addr})
		if len(g.Records("the next hop does not relay for the gate")) > 0 {
			t.Error("the next hop was asked")
		}
	})
	strict.Logged()
	if n := len(strict.LogLines("from=<> to=<relay-test@example.net>")); n != 1 {
		t.Errorf("%d questions in the log of the Postfix that does not relay, want 1", n)
	}
}

// deliverPublic delivers through a gate that listens on every address.
func deliverPublic(t *testing.T, g *harness.Gate) *harness.Client {
	t.Helper()
	_, port, _ := strings.Cut(g.Addr[strings.LastIndex(g.Addr, ":"):], ":")
	c := harness.MustDial(t, "127.0.0.1:"+port)
	if reply := c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "public")); !strings.HasPrefix(reply, "250 2.0.0 Ok: ") {
		t.Errorf("the message was answered with %q", reply)
	}
	return c
}
