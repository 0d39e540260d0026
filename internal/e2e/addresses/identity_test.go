package addresses

import (
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// stranger is the address of a client that no server here trusts.
const stranger = "192.0.2.7"

// TestRelayFormsXCLIENT has a gate without recipient_domains. Postfix itself does not
// relay for clients that it knows by XCLIENT, though it would relay for the gate. For
// clients that it knows by XFORWARD it relays.
func TestRelayFormsXCLIENT(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"xclient", "xforward"} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			p := relayingPostfix(t, "allow_untrusted_routing = no", "smtpd_authorized_xclient_hosts = 127.0.0.0/8")
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Keys: map[string]string{
				"listen":   harness.AcceptProxy,
				"next_hop": `identity = "` + identity + `"`,
			}})
			through := &formSender{t: t, addr: g.Addr, proxied: stranger}
			rcpts := forms(t, "relays.txt")
			if identity == "xclient" {
				wantNoRelay(t, p, g, through, rcpts)
				if line := p.WaitLog(1, ": client="); !strings.Contains(line, "["+stranger+"]") {
					t.Errorf("Postfix logged %q, want the client %s", line, stranger)
				}
				return
			}
			for _, rcpt := range rcpts {
				through.send("<a@example.com>", rcpt)
			}
			g.Stop()
			if to := relayed(t, p); len(to) == 0 {
				t.Error("nothing was relayed: the forms are not worth trying")
			}
		})
	}
}

// TestSenderFormsXCLIENT is TestSenderForms with XCLIENT before each message.
func TestSenderFormsXCLIENT(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere, "smtpd_authorized_xclient_hosts = 127.0.0.0/8")
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Keys: map[string]string{
		"listen":   harness.AcceptProxy,
		"next_hop": `identity = "xclient"`,
	}})
	checkSenderForms(t, p, g, &formSender{t: t, addr: g.Addr, proxied: stranger})
}

// TestEximPROXY tells Exim about the client by the PROXY protocol, the only way that
// Exim knows. Exim relays for the gate's address, and not for the client's.
func TestEximPROXY(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := harness.StartExim(t, harness.EximOptions{ProxyFrom: harness.Everywhere, RelayFor: harness.Everywhere})
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + s.Addr, Keys: map[string]string{
				"listen":   harness.AcceptProxy,
				"next_hop": `proxy = "` + version + `"`,
			}})
			through := &formSender{t: t, addr: g.Addr, proxied: stranger}
			if reply := through.send("<a@example.com>", "<"+harness.Mailbox+">"); !strings.HasPrefix(reply, "250") {
				t.Errorf("its own recipient was answered with %q", reply)
			}
			for _, rcpt := range forms(t, "relays.txt") {
				if reply := through.send("<a@example.com>", rcpt); strings.HasPrefix(reply, "250") {
					t.Errorf("RCPT TO:%q was taken: %q", rcpt, reply)
				}
			}
			line := s.WaitLog(1, " <= a@example.com")
			if !regexp.MustCompile(`\[192\.0\.2\.7\]`).MatchString(line) {
				t.Errorf("Exim logged %q, want the client %s", line, stranger)
			}
		})
	}
}
