package e2e

import (
	"net/http"
	"testing"
)

// TestNextHopUp: spamgate_next_hop_up says whether mail can pass, not whether somebody
// greets, and a message that fails at its recipients counts as failed, once.
func TestNextHopUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		postfix []string // further lines of main.cf; nil is no Postfix at all
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
			addr := freeAddr(t)
			if c.postfix != nil {
				addr = startPostfix(t, everywhere, c.postfix...).addr
			}
			g := startGate(t, setup{nextHop: "smtp://" + addr, keys: map[string]string{"next_hop": c.keys}})
			client := g.socketClient()
			check := func(when string, messages float64) {
				t.Helper()
				pollFor(t, when, func() bool { return nextHopUp(t, client) == c.up })
				m := metrics(t, client, "http://gate/metrics")
				if failed := value(t, m, "spamgate_messages_total", "outcome", "failed"); failed != messages*c.failed {
					t.Errorf("%s: %v messages failed, want %v", when, failed, messages*c.failed)
				}
			}
			check("before mail", 0)
			for n := range 2 {
				mail := mustDial(t, g.addr)
				mail.want(t, "MAIL FROM:<a@example.com>", "250")
				for range 2 {
					mail.want(t, "RCPT TO:<"+mailbox+">", c.reply)
				}
				if c.failed > 0 {
					mail.want(t, "DATA", "5")
				}
				mail.want(t, "QUIT", "221")
				check("after mail", float64(n+1))
			}
		})
	}
}

// nextHopUp is the value of the metric, -1 while it is not known.
func nextHopUp(t testing.TB, client *http.Client) float64 {
	t.Helper()
	for _, m := range metrics(t, client, "http://gate/metrics")["spamgate_next_hop_up"].GetMetric() {
		return m.GetGauge().GetValue()
	}
	return -1
}
