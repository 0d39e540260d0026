package servers

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestXFORWARDEnds checks until when Postfix logs the client of XFORWARD: until the end
// of a message or RSET, but beyond a MAIL that it refuses for its syntax.
func TestXFORWARDEnds(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere)
	for i, step := range []struct {
		commands string // after XFORWARD
		kept     bool
	}{
		{"MAIL FROM:<a@example.com>|RSET", false},
		{"MAIL FROM:<a@example.com>|RCPT TO:<" + harness.Mailbox + ">|DATA|x: y\r\n.", false},
		{"MAIL FROM:<a@1.2.3.4>", true},
		{"MAIL FROM:<a@1.2.3.4>|RSET", false},
	} {
		c := harness.MustDial(t, p.Addr)
		c.Want(t, "EHLO client.example", "250")
		forwarded := fmt.Sprintf("192.0.2.%d", 100+i)
		c.Want(t, "XFORWARD ADDR="+forwarded, "250")
		for command := range strings.SplitSeq(step.commands, "|") {
			c.Ask(command)
		}
		before := len(p.LogLines(": client="))
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "250")
		c.Ask("QUIT")
		line := p.WaitLog(before+1, ": client=")
		if kept := strings.Contains(line, forwarded); kept != step.kept {
			t.Errorf("%s: Postfix logged %q", step.commands, line)
		}
	}
}

// TestXFORWARDOfAnother sends mail of two clients on one connection to Postfix. Postfix
// refuses the MAIL of the first client and the XFORWARD of the second. Its log must not
// have the first client's address with the second one's mail.
func TestXFORWARDOfAnother(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere) // with inet_protocols = ipv4
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Keys: map[string]string{
		"listen":   harness.AcceptProxy,
		"next_hop": `identity = "xforward"`,
	}})
	first := harness.MustDialFrom(t, g.Addr, "192.0.2.8")
	first.Want(t, "EHLO first.example", "250")
	first.Want(t, "MAIL FROM:<a@1.2.3.4>", "250")
	first.Want(t, "RCPT TO:<"+harness.Mailbox+">", "501 5.1.7")
	first.Want(t, "RSET", "250")
	second := harness.MustDialFrom(t, g.Addr, "2001:db8::9")
	second.Want(t, "EHLO second.example", "250")
	if reply := second.MustSend(t, "b@example.com", harness.Mailbox, harness.SmallMessage("b@example.com", "second")); !strings.HasPrefix(reply, "250") {
		t.Fatalf("the message was answered with %q", reply)
	}
	if line := p.WaitLog(1, ": client="); strings.Contains(line, "192.0.2.8") {
		t.Errorf("Postfix logged %q, which is another client's address", line)
	}
}
