package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// everywhere is a network that 127.0.0.1 belongs to, nowhere one that no client
// here belongs to.
const (
	everywhere = "127.0.0.0/8"
	nowhere    = "10.255.255.255/32"
)

// gateReceived is the gate's own trace field, as Postfix stores it.
var gateReceived = regexp.MustCompile(`^Received: from client\.example \((?:[^ ()]+ )?\[127\.0\.0\.2\]\)\n\tby gate\.example with ESMTP id [A-Z2-7]{12};\n\t[^\n]*\n`)

func TestPostfixDelivers(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, files: map[string]string{
		"blocked.txt": "bulk.example  # bought addresses ## told by phone\n",
	}})

	// From another address than the gate's own, so that Postfix's log tells
	// whose it has.
	c := mustDialFrom(t, g.addr, "127.0.0.2")
	c.want(t, "MAIL FROM:<x@news.bulk.example>", "250")
	reply := c.want(t, "RCPT TO:<"+mailbox+">", "550")
	id := wantRefusal(t, reply, "x@news.bulk.example", "blocked", "bought addresses")
	if r := g.waitRecord("refused"); r.string("id") != id || r.string("list") != "blocked" || !strings.HasSuffix(r.string("source"), "blocked.txt:1") {
		t.Errorf("the log's line of id %s: %v", id, r)
	}
	c.want(t, "RSET", "250")

	// Anything that a message may hold, to arrive as it is: dots, 8-bit bytes,
	// a long line, trailing space, control characters, no final empty line.
	message := letter("a@example.com", "clean") +
		".\r\n..\r\n...a\r\n" + strings.Repeat("long ", 5000) + "\r\n" +
		"8-bit \xe4\xf6\xfc \xff\x80 \x01\x1b\x7f\r\ntab\t \r\n\r\n\r\nFrom the end\r\n"
	reply = c.mustSend(t, "a@example.com", mailbox, message)
	m := regexp.MustCompile(`^250 2\.0\.0 Ok: queued as ([0-9A-Za-z]+)$`).FindStringSubmatch(reply)
	if m == nil {
		t.Fatalf("the client heard %q, want Postfix's own words", reply)
	}
	queueID := m[1]
	p.waitLog(1, queueID, "status=sent")

	// Return-Path, X-Original-To, Delivered-To and Received are Postfix's.
	mail := p.mail()
	trace, ok := strings.CutSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n"))
	if !ok {
		t.Errorf("the mail arrived changed:\n%.2000q", mail)
	}
	_, ours, _ := strings.Cut(trace, "(UTC)\n")
	if !gateReceived.MatchString(ours) || gateReceived.ReplaceAllString(ours, "") != "" {
		t.Errorf("between Postfix's trace fields and the message: %q", ours)
	}

	// By XFORWARD Postfix's log has who the client is, its HELO, and our id for
	// the message. The client's name depends on the machine's resolver.
	r := g.waitRecord("accepted")
	line := p.waitLog(1, queueID+": client=")
	if !strings.Contains(line, "[127.0.0.1], orig_queue_id="+r.string("id")+", orig_client=") || !strings.HasSuffix(line, "[127.0.0.2]\n") {
		t.Errorf("Postfix logged %q, want the gate's client 127.0.0.2 and the id %s", line, r.string("id"))
	}
	line = p.waitLog(1, queueID+": info: header Subject: clean")
	if !strings.Contains(line, "[127.0.0.2]; ") || !strings.HasSuffix(line, "proto=ESMTP helo=<client.example>\n") {
		t.Errorf("Postfix logged %q, want the client 127.0.0.2 and its HELO", line)
	}
	if !strings.Contains(r.string("next_hop"), queueID) {
		t.Errorf("the gate logged %v, want Postfix's queue id", r)
	}
	// Postfix counts the commands of each connection as it ends. Some only ask what
	// it offers.
	g.stop()
	settledPostfix(t, p)
	lines := p.logLines("disconnect from", " rcpt=")
	if len(lines) != 1 || !strings.Contains(lines[0], " rcpt=1 data=1 ") {
		t.Errorf("Postfix logged %q, want one transaction: a listed sender costs it nothing", lines)
	}
}

// wantRefusal takes a refusal apart and returns its id.
func wantRefusal(t testing.TB, reply, sender, list, reason string) (id string) {
	t.Helper()
	want := fmt.Sprintf("^550 5\\.7\\.1 <%s> refused: list %s \\(%s\\); id ([A-Z2-7]{12})$",
		regexp.QuoteMeta(sender), list, regexp.QuoteMeta(reason))
	m := regexp.MustCompile(want).FindStringSubmatch(reply)
	if m == nil {
		t.Fatalf("the refusal %q does not match %s", reply, want)
	}
	return m[1]
}

func TestPostfixRefuses(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr})
	direct := mustDialFrom(t, p.addr, "127.0.0.3")
	through := mustDialFrom(t, g.addr, "127.0.0.2")

	for _, c := range []*client{direct, through} {
		c.want(t, "MAIL FROM:<a@example.com>", "250")
	}
	const rcpt = "RCPT TO:<nobody@example.org>"
	want := direct.want(t, rcpt, "550")
	if got := through.want(t, rcpt, "550"); got != want {
		t.Errorf("through the gate %q, from Postfix %q", got, want)
	}
	// The transaction is still good for a recipient that exists.
	through.want(t, "RCPT TO:<"+mailbox+">", "250 2.1.5")
	through.want(t, "DATA", "354")
	through.want(t, "Subject: x\r\n\r\n.", "250 2.0.0 Ok: queued as")
}

func TestPostfixNeverSeesListedHeader(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, noReuse: true})

	c := mustDial(t, g.addr)
	reply := c.mustSend(t, "a@example.com", mailbox, letter("x@spam.example", "listed"))
	wantRefusal(t, reply, "x@spam.example", "blocked", "unsolicited mail")
	// Postfix counts the commands of each connection as it ends. A lost
	// connection is told on the line before. Connections without RCPT only ask what
	// it offers, and whether it takes mail.
	line := p.waitLog(1, "disconnect from", " rcpt=")
	if !strings.Contains(line, "rcpt=1") || strings.Contains(line, "data") {
		t.Errorf("Postfix logged %q, want RCPT and no DATA", line)
	}

	c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "clean"))
	if line := p.waitLog(2, "disconnect from", " rcpt="); !strings.Contains(line, "data=1") {
		t.Errorf("Postfix logged %q, want DATA", line)
	}
}

// TestRelayCheck opens a gate to other machines, which it may only where nobody
// can send mail to anywhere through it. (All traffic of the test stays on
// loopback.)
func TestRelayCheck(t *testing.T) {
	t.Parallel()
	trusting := startPostfix(t, everywhere)
	strict := startPostfix(t, nowhere)
	const public = "0.0.0.0:0"
	const domains = "[policy]\nrecipient_domains = [\"example.org\"]\n"

	t.Run("open relay", func(t *testing.T) {
		g := launchGate(t, setup{listen: public, nextHop: "smtp://" + trusting.addr})
		if code := g.wait(); code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		said := g.log.String()
		for _, text := range []string{"relays for the gate", "relay-test@example.net", "recipient_domains", "mynetworks"} {
			if !strings.Contains(said, text) {
				t.Errorf("it said nothing of %q", text)
			}
		}
		if strings.Contains(said, `"listening"`) {
			t.Error("it listened")
		}
	})
	t.Run("next hop does not relay", func(t *testing.T) {
		g := startGate(t, setup{listen: public, nextHop: "smtp://" + strict.addr})
		g.waitRecord("the next hop does not relay for the gate")
		deliverPublic(t, g)
	})
	t.Run("recipient domains", func(t *testing.T) {
		g := startGate(t, setup{listen: public, nextHop: "smtp://" + trusting.addr, more: domains})
		c := deliverPublic(t, g)
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<relay-test@example.net>", "550 5.7.1")
	})
	t.Run("public maildir", func(t *testing.T) {
		g := launchGate(t, setup{listen: public})
		if code := g.wait(); code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		if !strings.Contains(g.log.String(), "allow_public") {
			t.Error("it did not say what to do")
		}
	})
	t.Run("loopback is not asked about", func(t *testing.T) {
		g := startGate(t, setup{nextHop: "smtp://" + trusting.addr})
		if len(g.records("the next hop does not relay for the gate")) > 0 {
			t.Error("the next hop was asked")
		}
	})
	strict.logged()
	if n := len(strict.logLines("from=<> to=<relay-test@example.net>")); n != 1 {
		t.Errorf("%d questions in the log of the Postfix that does not relay, want 1", n)
	}
}

// deliverPublic delivers through a gate that listens on every address.
func deliverPublic(t *testing.T, g *gate) *client {
	t.Helper()
	_, port, _ := strings.Cut(g.addr[strings.LastIndex(g.addr, ":"):], ":")
	c := mustDial(t, "127.0.0.1:"+port)
	if reply := c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "public")); !strings.HasPrefix(reply, "250 2.0.0 Ok: queued") {
		t.Errorf("the message was answered with %q", reply)
	}
	return c
}
