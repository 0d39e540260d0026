package policyservice

import (
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestStates: where Postfix asks, and what becomes of a message to one recipient and to two.
func TestStates(t *testing.T) {
	t.Parallel()
	const (
		text    = " rejected: <a@spam.example> refused: list blocked (unsolicited mail); id "
		client  = "550 5.7.1 <unknown[127.0.0.1]>: Client host" + text
		sender  = "550 5.7.1 <a@spam.example>: Sender address" + text
		data    = "550 5.7.1 <DATA>: Data command" + text
		end     = "550 5.7.1 <END-OF-MESSAGE>: End-of-data" + text
		tag     = "listed; list=marked; reason=unsure"
		warning = "policy question without a recipient, so it gets no refusal"
	)
	for name, tt := range map[string]struct {
		parameters []string
		item, two  string // the refusal of a listed sender's message to that many, or "250"
		tag        string // of a message to two
		warned     int    // questions without a recipient
	}{
		"sender restrictions": {[]string{"smtpd_sender_restrictions = check_policy_service POLICY"}, sender, sender, tag, 0},
		"sender restrictions at MAIL": {[]string{"smtpd_delay_reject = no", "smtpd_sender_restrictions = check_policy_service POLICY"},
			"250", "250", "", 1},
		"all before RCPT": {[]string{"smtpd_delay_reject = no", "smtpd_helo_required = yes", "smtpd_client_restrictions = check_policy_service POLICY",
			"smtpd_helo_restrictions = check_policy_service POLICY"}, "250", "250", "", 2},
		"data restrictions":        {[]string{"smtpd_data_restrictions = check_policy_service POLICY"}, data, "250", tag, 1},
		"end of data restrictions": {[]string{"smtpd_end_of_data_restrictions = check_policy_service POLICY"}, end, "250", "", 1},
		"everywhere": {[]string{"smtpd_client_restrictions = check_policy_service POLICY", "smtpd_sender_restrictions = check_policy_service POLICY",
			"smtpd_relay_restrictions = reject_unauth_destination, check_policy_service POLICY", "smtpd_recipient_restrictions = check_policy_service POLICY",
			"smtpd_data_restrictions = check_policy_service POLICY", "smtpd_end_of_data_restrictions = check_policy_service POLICY"}, client, client, tag, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, smtpd, tt.parameters...)
			if got := deliver(t, s.dial(""), "a@spam.example", "abuse@example.org"); !strings.HasPrefix(got, "250") {
				t.Errorf("to an exempt recipient: %s", got)
			}
			for want, to := range map[string][]string{tt.item: {"you@example.org"}, tt.two + " ": {"you@example.org", "me@example.org"}} {
				want = strings.TrimSuffix(want, " ")
				if got := deliver(t, s.dial(""), "a@spam.example", to...); !strings.HasPrefix(got, want) {
					t.Errorf("to %s: %s, want %s", to, got, want)
				}
			}
			if got := deliver(t, s.dial(""), "a@tag.example", "postmaster@example.org", "abuse@example.org"); !strings.HasPrefix(got, "250") {
				t.Errorf("a tagged message: %s", got)
			}
			if got := strings.Join(s.tags("postmaster"), "|"); got != tt.tag {
				t.Errorf("tags %q, want %q", got, tt.tag)
			}
			s.wantRecords(tt.warned, warning)
			if tt.item != "250" {
				harness.WaitFor(t, "a line about each of 4 messages", func() bool { return len(s.gate.Records("accepted"))+len(s.gate.Records("refused")) >= 4 })
				if n := len(s.gate.Records("accepted")) + len(s.gate.Records("refused")); n != 4 {
					t.Errorf("%d lines about 4 messages", n)
				}
			}
			if tt.item == data {
				chunk(t, s.dial(""), "you@example.org", data)
				chunk(t, s.dial(""), "abuse@example.org", "250")
			}
		})
	}
}

// deliver sends a message and returns the first reply that refuses it, or the last reply.
func deliver(t testing.TB, c *harness.Client, from string, to ...string) string {
	t.Helper()
	defer c.Close()
	commands := []string{"MAIL FROM:<" + from + ">"}
	for _, rcpt := range to {
		commands = append(commands, "RCPT TO:<"+rcpt+">")
	}
	for _, command := range append(commands, "DATA") {
		reply, err := c.Ask(command)
		if err != nil {
			t.Fatal(err)
		}
		if reply[0] > '3' {
			return reply
		}
	}
	return c.Want(t, "Subject: test\r\n\r\nHello.\r\n.", "")
}

// chunk sends a message with BDAT, and wants a reply to that.
func chunk(t testing.TB, c *harness.Client, to, want string) {
	t.Helper()
	c.Want(t, "MAIL FROM:<a@spam.example>", "250")
	c.Want(t, "RCPT TO:<"+to+">", "250")
	c.Want(t, "BDAT 10 LAST\r\nSubject: x", want)
}
