package monitoring

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// tlsOnly are the lines of main.cf for a Postfix that takes no command before STARTTLS.
func tlsOnly(t *testing.T, more ...string) []string {
	cert := harness.NewCertificate(t, "mx.example.org")
	return append(more, "smtpd_tls_security_level = encrypt", "smtpd_tls_cert_file = "+cert.Cert, "smtpd_tls_key_file = "+cert.Key)
}

// startTLSOnly starts such a Postfix, and returns where it takes the gate's mail: with a key for
// PROXY at a service of its own, since the test asks the other one without it.
func startTLSOnly(t *testing.T, keys string, more ...string) (*harness.Postfix, string) {
	t.Helper()
	if !strings.HasPrefix(keys, "proxy") {
		postfix := harness.StartPostfix(t, harness.Everywhere, tlsOnly(t, more...)...)
		return postfix, postfix.Addr
	}
	addr := harness.FreeAddr(t)
	service := harness.PostfixSmtpd + "\n" + addr + " inet n - n - - smtpd\n  -o smtpd_upstream_proxy_protocol=haproxy"
	return harness.StartPostfixService(t, service, harness.Everywhere, tlsOnly(t, more...)...), addr
}

// hopMetric returns a metric of the only next hop, or -1 if it is missing.
func hopMetric(t *testing.T, client *http.Client, name string, labels ...string) float64 {
	t.Helper()
	m := harness.ReadMetrics(t, client, "http://gate/metrics")
	if m[name] == nil {
		return -1
	}
	return harness.MetricValue(t, m, name, labels...)
}

// TestPostfixWantsTLS has a Postfix that takes no mail without TLS, and learns from the gate who
// the client is, or does not. The gate begins TLS although its configuration does not say so. If
// Postfix does not offer STARTTLS, no client receives the 530, and all that watch the gate say that
// the next hop is down, and why.
func TestPostfixWantsTLS(t *testing.T) {
	t.Parallel()
	const refusal = "530 5.7.0 Must issue a STARTTLS command first"
	for name, c := range map[string]struct {
		postfix []string
		keys    string
	}{
		"plain":   {},
		"PROXY":   {keys: `proxy = "v1"`},
		"XCLIENT": {postfix: []string{"smtpd_authorized_xclient_hosts = 127.0.0.0/8"}, keys: `identity = "xclient"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("offered", func(t *testing.T) {
				t.Parallel()
				postfix, addr := startTLSOnly(t, c.keys, c.postfix...)
				g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + addr, Keys: map[string]string{"next_hop": c.keys}})
				for range 2 {
					if reply := harness.MustDial(t, g.Addr).MustSend(t, "ann@example.com", harness.Mailbox, harness.SmallMessage("ann@example.com", "TLS")); !strings.HasPrefix(reply, "250") {
						t.Error(reply)
					}
				}
				if h := health(t, g, 0); !h.Mail.NextHops[0].Up || h.Mail.NextHops[0].Unknown || h.Mail.Warnings != nil {
					t.Errorf("%+v", h.Mail)
				}
				g.Stop() // now the log is complete
				if n := len(g.Records("the next hop asks for STARTTLS: the gate uses it from now on, without verification")); n != 1 {
					t.Errorf("%d lines", n)
				}
				if mail := postfix.MailOf("you", 2); len(mail) != 2 {
					t.Errorf("%d messages", len(mail))
				}
			})
			t.Run("not offered", func(t *testing.T) {
				t.Parallel()
				_, addr := startTLSOnly(t, c.keys, append(c.postfix, "smtpd_discard_ehlo_keywords = starttls")...)
				g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + addr, Keys: map[string]string{"next_hop": c.keys}, Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"})
				client := harness.MustDial(t, g.Addr)
				client.Want(t, "MAIL FROM:<ann@example.com>", "250")
				client.Want(t, "RCPT TO:<"+harness.Mailbox+">", "451 4.4.1")
				h := health(t, g, 1)
				if hop := h.Mail.NextHops[0]; hop.Up || hop.Unknown || !strings.Contains(hop.Error, refusal) || !strings.Contains(h.Mail.Problems[0], refusal) {
					t.Errorf("%+v", h.Mail)
				}
				if out := g.Command(t, 1, "health"); !strings.Contains(strings.Join(strings.Fields(out), " "), refusal) {
					t.Error(out)
				}
				metrics := g.SocketClient()
				if up, failed := hopMetric(t, metrics, "spamgate_next_hop_up"), hopMetric(t, metrics, "spamgate_next_hop_failures_total", "stage", "session"); up != 0 || failed != 1 {
					t.Errorf("up %v, %v failures", up, failed)
				}
				if code, body := get(t, "http://"+g.WaitRecord("metrics").Text("addr")+"/readyz"); code != 503 || !strings.Contains(body, "is down") {
					t.Errorf("readyz: %d, %q", code, body)
				}
				for _, text := range []string{"no mail can pass: the next hop refuses the gate's own session", "next hop failed"} {
					if r := g.WaitRecord(text); r.Text("level") != "ERROR" || !strings.Contains(r.Text("error"), refusal) {
						t.Errorf("%v", r)
					}
				}
			})
		})
	}
}

// TestEximWantsTLS has an Exim that refuses recipients without TLS, as an ACL can.
func TestEximWantsTLS(t *testing.T) {
	t.Parallel()
	exim := harness.StartExim(t, harness.EximOptions{TLSFor: "*", Rcpt: "deny !encrypted = *\n  message = 530 5.7.0 TLS first"})
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + exim.Addr})
	for range 2 {
		if reply := harness.MustDial(t, g.Addr).MustSend(t, "ann@example.com", harness.Mailbox, harness.SmallMessage("ann@example.com", "TLS")); !strings.HasPrefix(reply, "250") {
			t.Error(reply)
		}
	}
	g.Stop() // now the log is complete
	if n := len(g.Records("the next hop asks for STARTTLS: the gate uses it from now on, without verification")); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// TestProbeTellsNothing: a Postfix that refuses the gate's own MAIL, and learns who its clients
// are, is neither up nor down until a client's mail passes.
func TestProbeTellsNothing(t *testing.T) {
	t.Parallel()
	const refusal = "554 5.7.1 <>: Sender address rejected: Access denied"
	postfix := harness.StartPostfix(t, harness.Everywhere, "smtpd_authorized_xclient_hosts = 127.0.0.0/8",
		"smtpd_null_access_lookup_key = <>", "smtpd_delay_reject = no", "smtpd_sender_restrictions = check_sender_access inline:{ <>=REJECT }")
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + postfix.Addr, Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"})
	metrics, probes := g.SocketClient(), "http://"+g.WaitRecord("metrics").Text("addr")
	h := health(t, g, 0)
	if hop := h.Mail.NextHops[0]; hop.Up || !hop.Unknown || hop.Error != refusal || len(h.Mail.Warnings) != 1 || !strings.Contains(h.Mail.Warnings[0], refusal) {
		t.Errorf("%+v", h.Mail)
	}
	if out := g.Command(t, 0, "health"); !strings.Contains(out, "mail   WARNING: next hop smtp://"+postfix.Addr) || !strings.Contains(out, "not known") {
		t.Error(out)
	}
	if up, unknown := hopMetric(t, metrics, "spamgate_next_hop_up"), hopMetric(t, metrics, "spamgate_next_hop_unknown"); up != -1 || unknown != 1 {
		t.Errorf("up %v, unknown %v", up, unknown)
	}
	if code, body := get(t, probes+"/readyz"); code != 200 || !strings.HasPrefix(body, "ready\nwarning: next hop ") {
		t.Errorf("readyz: %d, %q", code, body)
	}
	harness.MustDial(t, g.Addr).MustSend(t, "ann@example.com", harness.Mailbox, harness.SmallMessage("ann@example.com", "known"))
	if h := health(t, g, 0); !h.Mail.NextHops[0].Up || h.Mail.NextHops[0].Unknown || h.Mail.Warnings != nil {
		t.Errorf("after mail: %+v", h.Mail)
	}
	if up, unknown := hopMetric(t, metrics, "spamgate_next_hop_up"), hopMetric(t, metrics, "spamgate_next_hop_unknown"); up != 1 || unknown != 0 {
		t.Errorf("after mail: up %v, unknown %v", up, unknown)
	}
}

// TestRecipientsRefused has a Postfix without its mailboxes refuse 50 recipients, and all that
// watch the gate say so. Recipients that the gate refuses do not count.
func TestRecipientsRefused(t *testing.T) {
	t.Parallel()
	postfix := harness.StartPostfix(t, harness.Nowhere, "virtual_mailbox_maps = inline:{ nobody@example.org=nobody/ }",
		"smtpd_soft_error_limit = 1000", "smtpd_hard_error_limit = 1000")
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + postfix.Addr, Files: map[string]string{"blocked.txt": "spam.example\n"},
		Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n[policy]\nrecipient_domains = [\"example.org\"]\n"})
	metrics, probes := g.SocketClient(), "http://"+g.WaitRecord("metrics").Text("addr")
	refuse := func(n int, from, domain string) {
		t.Helper()
		for ; n > 0; n -= 7 {
			client := harness.MustDial(t, g.Addr)
			client.Want(t, "MAIL FROM:<"+from+">", "250")
			for i := range min(n, 7) {
				client.Want(t, fmt.Sprintf("RCPT TO:<user%d@%s>", i, domain), "550")
			}
			client.Want(t, "QUIT", "221")
		}
	}
	check := func(recipients, refused int, warned bool) {
		t.Helper()
		h := health(t, g, 0)
		hop := h.Mail.NextHops[0]
		if !hop.Up || hop.Recipients != recipients || hop.RecipientsRefused != refused || warned != (len(h.Mail.Warnings) == 1) {
			t.Errorf("%+v", h.Mail)
		}
		if n, total := hopMetric(t, metrics, "spamgate_next_hop_recipients_refused"), hopMetric(t, metrics, "spamgate_next_hop_recipients"); n != float64(refused) || total != float64(recipients) {
			t.Errorf("%v of %v", n, total)
		}
		if code, body := get(t, probes+"/readyz"); code != 200 || warned != strings.Contains(body, "warning: ") {
			t.Errorf("readyz: %d, %q", code, body)
		}
		if !warned {
			return
		}
		for _, part := range []string{fmt.Sprintf("refused %d of %d recipients in the last 10 minutes", refused, recipients), "550 5.1.1 <...>: Recipient address rejected", "one client guesses addresses"} {
			if !strings.Contains(h.Mail.Warnings[0], part) {
				t.Errorf("no %q in %q", part, h.Mail.Warnings[0])
			}
		}
		if out := g.Command(t, 0, "health"); !strings.Contains(out, "mail   WARNING: next hop smtp://"+postfix.Addr) || !strings.Contains(out, "mail   can pass") {
			t.Error(out)
		}
	}
	refuse(60, "ann@spam.example", "example.org")
	refuse(60, "ann@example.com", "elsewhere.example")
	refuse(49, "ann@example.com", "example.org")
	check(49, 49, false)
	refuse(1, "ann@example.com", "example.org")
	check(50, 50, true)
}
