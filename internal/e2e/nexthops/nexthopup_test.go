package nexthops

import (
	"net/http"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestNextHopUp checks that spamgate_next_hop_up says whether mail can pass, not whether
// the server greets, and that a message which fails at its recipients counts as failed
// once.
func TestNextHopUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		postfix []string // more lines of main.cf; nil: no Postfix
		keys    string   // of [next_hop]
		reply   string   // to RCPT
		up      float64
		failed  float64
	}{
		"good":           {postfix: []string{}, reply: "250", up: 1},
		"nobody there":   {reply: "451 4.4.1", failed: 1},
		"no XCLIENT":     {postfix: []string{}, keys: `identity = "xclient"`, reply: "451 4.4.1", failed: 1},
		"XCLIENT":        {postfix: []string{"smtpd_authorized_xclient_hosts = 127.0.0.0/8"}, keys: `identity = "xclient"`, reply: "250", up: 1},
		"no STARTTLS":    {postfix: []string{}, keys: `tls = "required"`, reply: "451 4.4.1", failed: 1},
		"disk full":      {postfix: []string{"queue_minfree = 999999999999999"}, reply: "452 4.3.1"},
		"refused sender": {postfix: []string{"smtpd_sender_restrictions = reject", "smtpd_delay_reject = no"}, reply: "554 5.7.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := harness.FreeAddr(t)
			if c.postfix != nil {
				addr = harness.StartPostfix(t, harness.Everywhere, c.postfix...).Addr
			}
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + addr, Keys: map[string]string{"next_hop": c.keys}})
			client := g.SocketClient()
			check := func(when string, messages float64) {
				t.Helper()
				harness.WaitFor(t, when, func() bool { return nextHopUp(t, client) == c.up })
				m := harness.ReadMetrics(t, client, "http://gate/metrics")
				if failed := harness.MetricValue(t, m, "spamgate_messages_total", "outcome", "failed"); failed != messages*c.failed {
					t.Errorf("%s: %v messages failed, want %v", when, failed, messages*c.failed)
				}
			}
			check("before mail", 0)
			for n := range 2 {
				mail := harness.MustDial(t, g.Addr)
				mail.Want(t, "MAIL FROM:<a@example.com>", "250")
				for range 2 {
					mail.Want(t, "RCPT TO:<"+harness.Mailbox+">", c.reply)
				}
				if c.failed > 0 {
					mail.Want(t, "DATA", "5")
				}
				mail.Want(t, "QUIT", "221")
				check("after mail", float64(n+1))
			}
		})
	}
}

// nextHopUp returns the value of the metric, or -1 while it is unknown.
func nextHopUp(t testing.TB, client *http.Client) float64 {
	t.Helper()
	for _, m := range harness.ReadMetrics(t, client, "http://gate/metrics")["spamgate_next_hop_up"].GetMetric() {
		return m.GetGauge().GetValue()
	}
	return -1
}
