package policyservice

import (
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestPostfix has Postfix ask as the documentation recommends.
func TestPostfix(t *testing.T) {
	t.Parallel()
	s := open(t, smtpd, recommended)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *site)
	}{
		{"recipients", testRecipients},
		{"replies", testReplies},
		{"tags", testTags},
		{"exempt client", testExemptClient},
		{"header", testHeader},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s.in(t)) })
	}
}

// testRecipients: one message to recipients who are refused and to others who are reachable by
// every sender. It has one id, one line in the log for those, and one for these.
func testRecipients(t *testing.T, s *site) {
	c := s.dial("")
	c.Want(t, "MAIL FROM:<several@spam.example>", "250")
	you := c.Want(t, "RCPT TO:<you@example.org>", "550 5.7.1 <you@example.org>: Recipient address rejected: <several@spam.example> refused: list blocked (unsolicited mail); id ")
	me := c.Want(t, "RCPT TO:<me@example.org>", "550 5.7.1 <me@example.org>")
	if anID.FindString(you) != anID.FindString(me) {
		t.Errorf("two ids of one message: %s, %s", you, me)
	}
	c.Want(t, "RCPT TO:<Abuse@Example.Org>", "250")
	c.Want(t, "RCPT TO:<postmaster@example.org>", "250")
	if reply := finish(t, c, "exempt"); !strings.HasPrefix(reply, "250") {
		t.Error(reply)
	}
	s.OneMail("abuse")
	s.OneMail("postmaster")

	c.Want(t, "MAIL FROM:<several@spam.example>", "250")
	if again := c.Want(t, "RCPT TO:<you@example.org>", "550"); anID.FindString(you) == anID.FindString(again) {
		t.Errorf("the next message has the same id: %s", again)
	}
	s.wantRecords(2, "refused", "list", "blocked", "from", "<several@spam.example>", "to", "<you@example.org>")
	s.wantRecords(1, "accepted", "exempt", "recipient", "from", "<several@spam.example>")
}

// testReplies: Postfix's reply has the text of the gate's own reply.
func testReplies(t *testing.T, s *site) {
	client, proxy := s.dial(""), harness.MustDial(t, s.gate.Addr)
	for _, sender := range []string{
		"a@spam.example",
		"friend@spam.example",
		"A@Sub.Spam.Example",
		"a@clean.example",
		"a@fields.example",
		"",
		"a@later.example",
		"a@tag.example",
		"a@drop.example",
		`"john smith"@spam.example`,
		`"a@clean.example"@spam.example`,
		`"DISCARD  \"x\\y\""@spam.example`,
		"100%s%n@spam.example",
		"a%spam.example@clean.example",
		"a=spam.example@clean.example",
		"a@xn--bcher-kva.example",
		strings.Repeat("a", 60) + "@" + strings.Repeat("abcdefgh.", 20) + "spam.example",
	} {
		reply, err := client.Verdict(sender, "you@example.org")
		if err != nil {
			t.Fatal(err)
		}
		want, err := proxy.Verdict(sender, "you@example.org")
		if err != nil {
			t.Fatal(err)
		}
		want = strings.Replace(want, "5.7.1 ", "5.7.1 <you@example.org>: Recipient address rejected: ", 1)
		want = strings.Replace(want, "451 4.7.1 ", "450 4.7.1 <you@example.org>: Recipient address rejected: ", 1)
		if want[0] == '2' {
			want, reply = want[:3], reply[:3]
		}
		if withoutID(reply) != withoutID(want) {
			t.Errorf("%s:\n got %s\nwant %s", sender, reply, want)
		}
	}
	client.Want(t, "MAIL FROM:<jürgen@bücher.example> SMTPUTF8", "250")
	client.Want(t, "RCPT TO:<you@example.org>", "550 5.7.1 <you@example.org>: Recipient address rejected: <j?rgen@b?cher.example> refused: list blocked (unsolicited mail); id ")
	client.Want(t, "RSET", "250")
	// The gate refuses a source route. Postfix removes it, and shows what is left.
	client.Want(t, "MAIL FROM:<@clean.example:a@spam.example>", "250")
	client.Want(t, "RCPT TO:<you@example.org>", "550 5.7.1 <you@example.org>: Recipient address rejected: <a@spam.example> refused")
}

// testTags: the message has one field, that of the gate, whoever its recipients are.
func testTags(t *testing.T, s *site) {
	for _, tt := range []struct {
		sender, want string
		to           []string
	}{
		{"1@tag.example", "listed; list=marked; reason=unsure", []string{"you@example.org", "one@example.org"}},
		{"2@drop.example", "listed; list=dropped", []string{"postmaster@example.org", "you@example.org", "two@example.org"}},
		{"4@tag.example", "listed; list=marked; reason=unsure", []string{"nobody@example.org", "you@example.org", "three@example.org", "three@example.org"}},
	} {
		c := s.dial("")
		c.Want(t, "MAIL FROM:<"+tt.sender+">", "250")
		for _, to := range tt.to {
			want := "250"
			if to == "nobody@example.org" {
				want = "550 5.1.1"
			}
			c.Want(t, "RCPT TO:<"+to+">", want)
		}
		if reply := finish(t, c, "tagged"); !strings.HasPrefix(reply, "250") {
			t.Error(reply)
		}
		user, _, _ := strings.Cut(tt.to[len(tt.to)-1], "@")
		if got := s.tags(user); strings.Join(got, "|") != tt.want {
			t.Errorf("from %s to %s: tags %q, want %q", tt.sender, tt.to, got, tt.want)
		}
		s.wantRecords(1, "accepted", "from", "<"+tt.sender+">")
	}
}

// TestDefer: Postfix refuses for good what it would refuse anyway, and defers the rest.
func TestDefer(t *testing.T) {
	t.Parallel()
	s := open(t, smtpd, recommended+", reject_unlisted_recipient")
	c := s.dial("")
	c.Want(t, "MAIL FROM:<a@later.example>", "250")
	c.Want(t, "RCPT TO:<nobody@example.org>", "550 5.1.1")
	c.Want(t, "RCPT TO:<you@example.org>", "450 4.7.1 <you@example.org>: Recipient address rejected: <a@later.example> refused: list later (under observation); id ")
	c.Want(t, "RCPT TO:<you@elsewhere.example>", "554 5.7.1 <you@elsewhere.example>: Relay access denied")
	c.Want(t, "RCPT TO:<abuse@example.org>", "250")
}

// TestNoRelay: a sender that a list allows gets nothing but what Postfix allows.
func TestNoRelay(t *testing.T) {
	t.Parallel()
	s := open(t, smtpd, "smtpd_relay_restrictions = check_policy_service POLICY, reject_unauth_destination", "smtpd_recipient_restrictions = check_policy_service POLICY, reject_unauth_destination")
	for _, sender := range []string{"friend@spam.example", "a@clean.example", "a@tag.example", ""} {
		reply, err := s.dial("").Verdict(sender, "you@elsewhere.example")
		if err != nil || !strings.HasPrefix(reply, "554 5.7.1 <you@elsewhere.example>: Relay access denied") {
			t.Errorf("%s: %s, %v", sender, reply, err)
		}
	}
}

// testExemptClient: the client is Postfix's, not Postfix.
func testExemptClient(t *testing.T, s *site) {
	for from, want := range map[string]string{"127.0.0.9": "250", "127.0.0.8": "550 5.7.1"} {
		reply, err := s.dial(from).Verdict("client@spam.example", "you@example.org")
		if err != nil || !strings.HasPrefix(reply, want) {
			t.Errorf("%s: %s, %v", from, reply, err)
		}
	}
	record := s.gate.WaitRecord("refused", "from", "<client@spam.example>")
	if client := record.Text("client"); !strings.HasPrefix(client, "127.0.0.8:") || strings.HasSuffix(client, ":0") {
		t.Errorf("the log names the client %s", client)
	}
	if helo := record.Text("helo"); helo != "client.example" {
		t.Errorf("the log names the client %s", helo)
	}
}

// testHeader: the header is not judged, as the documentation says.
func testHeader(t *testing.T, s *site) {
	c := s.dial("")
	c.Want(t, "MAIL FROM:<a@clean.example>", "250")
	c.Want(t, "RCPT TO:<me@example.org>", "250")
	c.Want(t, "DATA", "354")
	c.Want(t, "From: a@fields.example\r\n\r\nHello.\r\n.", "250")
	if tags := s.tags("me"); !slices.Equal(tags, nil) {
		t.Errorf("tags %q", tags)
	}
}
