package policyservice

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter/clientname/dnstest"
)

// TestRecipientsAndProofs: each recipient has an answer of its own, and SPF is asked for the
// client of Postfix, which XCLIENT names here. What a signature might prove passes.
func TestRecipientsAndProofs(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(t, "127.0.0.1:0")
	zone.AddText("partner.example", "v=spf1 ip4:192.0.2.1 -all", 60)
	g := harness.StartGate(t, harness.Setup{
		Tables: fmt.Sprintf(`
[resolver]
addr = [%q]
[[policy_service]]
name = "postfix"
addr = "127.0.0.1:0"
[[recipient_policy]]
match = ["me@example.org"]
max_action = "tag"
[[recipient_policy]]
match = ["abuse@example.org"]
exempt = true
`, zone.Addr()),
		Lists: `
[[list]]
name = "partners"
path = "partners.txt"
type = "allow"
proven_by = ["spf"]
[[list]]
name = "signed"
path = "signed.txt"
type = "allow"
proven_by = ["dkim"]
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "own"
path = "own.txt"
per_recipient = true
`,
		Files: map[string]string{"partners.txt": "partner.example\n", "signed.txt": "signed.example\n",
			"blocked.txt": "spam.example\npartner.example\nsigned.example\n", "own.txt": "one@example.org news.example  # one asked\n"},
	})
	policy := "inet:" + g.WaitRecord("door open", "listener", "postfix").Text("addr")
	s := &site{t, startPostfix(t, smtpd, policy, recommended, "smtpd_authorized_xclient_hosts = 127.0.0.0/8, 192.0.2.0/24"), g}
	c := s.dial("")
	for _, step := range []struct{ client, from, answers string }{ // for you, me, abuse and one
		{"", "a@clean.example", "250 250 250 250"},
		{"", "a@spam.example", "550 250 250 550"},
		{"", "SRS0=hhh=tt=spam.example=a@clean.example", "550 250 250 550"},
		{"", "a@news.example", "250 250 250 550"},
		{"", "a@partner.example", "550 250 250 550"},
		{"", "a@signed.example", "250 250 250 250"},
		{"192.0.2.1", "a@partner.example", "250 250 250 250"},
		{"192.0.2.2", "a@partner.example", "550 250 250 550"},
	} {
		if step.client != "" {
			c.Want(t, "XCLIENT ADDR="+step.client, "220")
			c.Want(t, "EHLO client.example", "250")
		}
		c.Want(t, "MAIL FROM:<"+step.from+">", "250")
		var got []string
		for _, to := range []string{"you", "me", "abuse", "one"} {
			reply, err := c.Ask("RCPT TO:<" + to + "@example.org>")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, reply[:3])
		}
		if strings.Join(got, " ") != step.answers {
			t.Errorf("%s from %s: %q, want %s", step.client, step.from, got, step.answers)
		}
		c.Want(t, "RSET", "250")
	}
	s.wantRecords(1, "refused", "list", "own", "to", "<one@example.org>", "from", "<a@news.example>")
	s.wantRecords(2, "refused", "unproven", "partners", "from", "<a@partner.example>")
}
