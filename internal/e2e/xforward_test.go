package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestXFORWARDEnds asks Postfix until when it logs what XFORWARD said: the end of a message
// and RSET end it, a MAIL that is refused for its syntax does not.
func TestXFORWARDEnds(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere)
	for i, step := range []struct {
		commands string // after XFORWARD
		kept     bool
	}{
		{"MAIL FROM:<a@example.com>|RSET", false},
		{"MAIL FROM:<a@example.com>|RCPT TO:<" + mailbox + ">|DATA|x: y\r\n.", false},
		{"MAIL FROM:<a@1.2.3.4>", true},
		{"MAIL FROM:<a@1.2.3.4>|RSET", false},
	} {
		c := mustDial(t, p.addr)
		c.want(t, "EHLO client.example", "250")
		forwarded := fmt.Sprintf("192.0.2.%d", 100+i)
		c.want(t, "XFORWARD ADDR="+forwarded, "250")
		for command := range strings.SplitSeq(step.commands, "|") {
			c.ask(command)
		}
		before := len(p.logLines(": client="))
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<"+mailbox+">", "250")
		c.ask("QUIT")
		line := p.waitLog(before+1, ": client=")
		if kept := strings.Contains(line, forwarded); kept != step.kept {
			t.Errorf("%s: Postfix logged %q", step.commands, line)
		}
	}
}

// TestXFORWARDOfAnother: a client whose MAIL Postfix refuses, and one after it on the same
// connection whose address Postfix refuses in XFORWARD: the log must not have the first
// one's address with the second one's mail.
func TestXFORWARDOfAnother(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere) // which has inet_protocols = ipv4
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, keys: map[string]string{
		"listen":   behindProxy,
		"next_hop": `identity = "xforward"`,
	}})
	first := mustDialFrom(t, g.addr, "192.0.2.8")
	first.want(t, "EHLO first.example", "250")
	first.want(t, "MAIL FROM:<a@1.2.3.4>", "250")
	first.want(t, "RCPT TO:<"+mailbox+">", "501 5.1.7")
	first.want(t, "RSET", "250")
	second := mustDialFrom(t, g.addr, "2001:db8::9")
	second.want(t, "EHLO second.example", "250")
	if reply := second.mustSend(t, "b@example.com", mailbox, letter("b@example.com", "second")); !strings.HasPrefix(reply, "250") {
		t.Fatalf("the message was answered with %q", reply)
	}
	if line := p.waitLog(1, ": client="); strings.Contains(line, "192.0.2.8") {
		t.Errorf("Postfix logged %q, which is another client's address", line)
	}
}
