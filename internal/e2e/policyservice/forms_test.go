package policyservice

import (
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// formsSetup has a recipient with lines of her own, and a domain that takes all mail.
var formsSetup = harness.Setup{
	Lists: `
[[list]]
name = "blocked"
path = "blocked.txt"

[[list]]
name = "own"
path = "own.txt"
per_recipient = true
`,
	Files: map[string]string{"blocked.txt": "spam.example\n", "own.txt": "ann@example.org news.example\n"},
	Tables: `
[[policy_service]]
name = "postfix"
addr = "127.0.0.1:0"

[[milter]]
name = "beside"
addr = "127.0.0.1:0"

[policy]
recipient_domains = ["example.org", "sales.example.org"]

[[recipient_policy]]
match = ["@sales.example.org"]
exempt = true
`,
}

// formsDomains are domains of Postfix's own.
var formsDomains = []string{"myorigin = example.org", "mydestination = example.org, sales.example.org", "virtual_mailbox_domains =", "virtual_mailbox_maps =",
	"smtpd_relay_restrictions =", "smtpd_error_sleep_time = 0", "smtpd_soft_error_limit = 100", "smtpd_hard_error_limit = 100"}

// TestFormsOfRecipients: Postfix delivers many forms of an address to one recipient, and for each
// the same counts.
func TestFormsOfRecipients(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, formsSetup)
	service := g.WaitRecord("door open", "listener", "postfix").Text("addr")
	milter := g.WaitRecord("door open", "listener", "beside").Text("addr")
	for _, door := range []struct{ name, asks string }{
		{"policy service", "smtpd_recipient_restrictions = reject_unauth_destination, check_policy_service inet:" + service},
		{"milter", "smtpd_recipient_restrictions = reject_unauth_destination\nsmtpd_milters = inet:" + milter},
	} {
		p := harness.StartPostfix(t, harness.Nowhere, append([]string{door.asks}, formsDomains...)...)
		for _, forms := range []struct {
			from, want string
			to         []string
		}{
			{"q@spam.example", "250", []string{"joe@sales.example.org", "postmaster"}},
			{"q@spam.example", "550 5.7.1", []string{"joe@example.org", "joe%example.org@sales.example.org", "example.org!joe@sales.example.org",
				`"joe@example.org"@sales.example.org`, "joe", "joe@[127.0.0.1]"}},
			{"q@news.example", "250", []string{"joe@example.org"}},
			{"q@news.example", "550 5.7.1", []string{"ann@example.org", "ANN+tag@Example.Org.", "ann", "ann@[127.0.0.1]", "ann%example.org@example.org",
				"ann%example.org@sales.example.org", "sales.example.org!example.org!ann@sales.example.org", "example.org!ann",
				`"ann@example.org"@example.org`, "@sales.example.org:ann@example.org", "ann(x)@example.org"}},
		} {
			for _, to := range forms.to {
				c := harness.MustDial(t, p.Addr)
				c.Want(t, "MAIL FROM:<"+forms.from+">", "250")
				reply, err := c.Ask("RCPT TO:<" + to + ">")
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(reply, forms.want) {
					t.Errorf("%s, %s to %s: %s, want %s", door.name, forms.from, to, reply, forms.want)
				}
				c.Close()
			}
		}
	}
}
