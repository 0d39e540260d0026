package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// behindProxy are the keys of a gate whose clients come by a proxy in front of it.
const behindProxy = `proxy_protocol = ["127.0.0.0/8"]`

// stranger is a client that no server here trusts.
const stranger = "192.0.2.7"

// TestRelayFormsXCLIENT has no recipient_domains: Postfix itself does not relay
// for clients that it knows from the gate by XCLIENT, though it would for the
// gate. By XFORWARD it knows them, too, and relays all the same.
func TestRelayFormsXCLIENT(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"xclient", "xforward"} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			p := relayingPostfix(t, "allow_untrusted_routing = no", "smtpd_authorized_xclient_hosts = 127.0.0.0/8")
			g := startGate(t, setup{nextHop: "smtp://" + p.addr, keys: map[string]string{
				"listen":   behindProxy,
				"next_hop": `identity = "` + identity + `"`,
			}})
			through := &formSender{t: t, addr: g.addr, proxied: stranger}
			rcpts := forms(t, "relays.txt")
			if identity == "xclient" {
				wantNoRelay(t, p, g, through, rcpts)
				if line := p.waitLog(1, ": client="); !strings.Contains(line, "["+stranger+"]") {
					t.Errorf("Postfix logged %q, want the client %s", line, stranger)
				}
				return
			}
			for _, rcpt := range rcpts {
				through.send("<a@example.com>", rcpt)
			}
			g.stop()
			if to := relayed(t, p); len(to) == 0 {
				t.Error("nothing was relayed: the forms are not worth trying")
			}
		})
	}
}

// TestSenderFormsXCLIENT is TestSenderForms with the connection's identity
// changed in front of each message.
func TestSenderFormsXCLIENT(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere, "smtpd_authorized_xclient_hosts = 127.0.0.0/8")
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, keys: map[string]string{
		"listen":   behindProxy,
		"next_hop": `identity = "xclient"`,
	}})
	checkSenderForms(t, p, g, &formSender{t: t, addr: g.addr, proxied: stranger})
}

// TestEximPROXY tells Exim of the client by the PROXY protocol: it has no other
// way. It relays for the gate's address, and not for the client's.
func TestEximPROXY(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := startExim(t, eximOptions{proxyFrom: everywhere, relayFor: everywhere})
			g := startGate(t, setup{nextHop: "smtp://" + s.addr, keys: map[string]string{
				"listen":   behindProxy,
				"next_hop": `proxy = "` + version + `"`,
			}})
			through := &formSender{t: t, addr: g.addr, proxied: stranger}
			if reply := through.send("<a@example.com>", "<"+mailbox+">"); !strings.HasPrefix(reply, "250") {
				t.Errorf("its own recipient was answered with %q", reply)
			}
			for _, rcpt := range forms(t, "relays.txt") {
				if reply := through.send("<a@example.com>", rcpt); strings.HasPrefix(reply, "250") {
					t.Errorf("RCPT TO:%q was taken: %q", rcpt, reply)
				}
			}
			line := s.waitLog(1, " <= a@example.com")
			if !regexp.MustCompile(`\[192\.0\.2\.7\]`).MatchString(line) {
				t.Errorf("Exim logged %q, want the client %s", line, stranger)
			}
		})
	}
}

// TestEndingsNormalize is TestEndings with a gate that puts newlines right instead
// of refusing them.
func TestEndingsNormalize(t *testing.T) {
	t.Parallel()
	for _, hop := range endingHops {
		t.Run(hop.name, func(t *testing.T) {
			t.Parallel()
			gateEndings(t, hop, endings(t), `bare_newline = "normalize"`)
		})
	}
}

// TestDovecot sends mail through a gate into Dovecot, by TCP and by its socket.
func TestDovecot(t *testing.T) {
	t.Parallel()
	d := startDovecotLMTP(t)
	message := letter("a@example.com", "lmtp") + ".\r\n..dots\r\n\xff\r\n"
	for user, addr := range map[string]string{"you": "lmtp://" + d.addr, "me": "lmtp+unix:" + d.socket} {
		g := startGate(t, setup{nextHop: addr})
		c := mustDial(t, g.addr)
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<nobody@example.org>", "550 5.1.1")
		c.want(t, "RSET", "250")
		if reply := c.mustSend(t, "a@example.com", user+"@example.org", message); !strings.HasPrefix(reply, "250 2.0.0") {
			t.Errorf("the message was answered with %q", reply)
		}
		wantMessage(t, d.tree, user, message)
	}
}
