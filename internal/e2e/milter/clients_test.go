package milter

import (
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestClients: the gate knows the client and the login of Postfix's session, before and after
// STARTTLS and for each message.
func TestClients(t *testing.T) {
	g, addr := startGate(t, "exempt_authenticated = true\n")
	cert := harness.NewCertificate(t, "mx.example.org")
	server := startPostfix(t, addr, "smtpd_tls_security_level = may", "smtpd_tls_chain_files = "+cert.Both, "inet_protocols = all",
		"smtpd_authorized_xclient_hosts = 127.0.0.0/8, 192.0.2.0/24, [2001:db8::]/32", "relay_domains = example.net")
	c := harness.MustDial(t, server.addr).StartTLS(t, cert.Roots, "mx.example.org")
	for _, step := range []struct{ xclient, want string }{
		{"", "550 5.7.1"},
		{"ADDR=192.0.2.9", "250"},
		{"ADDR=192.0.2.1", "550 5.7.1"},
		{"ADDR=IPV6:2001:db8::9 NAME=exempt.example", "250"},
		{"ADDR=IPV6:2001:db8::1", "550 5.7.1"},
		{"ADDR=192.0.2.1 LOGIN=ann", "250"},
		{"ADDR=192.0.2.1 LOGIN=[UNAVAILABLE]", "550 5.7.1"},
		{"ADDR=[UNAVAILABLE]", "550 5.7.1"},
	} {
		if step.xclient != "" {
			c.Want(t, "XCLIENT "+step.xclient, "220")
		}
		c.Want(t, "EHLO client.example", "250")
		for range 2 {
			c.Want(t, "MAIL FROM:<a@reject.example>", "250")
			c.Want(t, "RCPT TO:<"+you+">", step.want)
			c.Want(t, "RSET", "250")
		}
	}
	c.Want(t, "QUIT", "221")
	g.Stop() // now the log is complete
	for _, client := range []string{"192.0.2.1:", "[2001:db8::1]:"} {
		found := false
		for _, r := range g.Records("refused") {
			found = found || len(r.Text("client")) > len(client) && r.Text("client")[:len(client)] == client
		}
		if !found {
			t.Errorf("no refusal of the client %s is in the log", client)
		}
	}
}
