package smtpfilter_test

import (
	"log/slog"
	"strings"
	"testing"
)

// TestHiddenAddressesInReplies wants addresses hidden in logged replies, where they are
// cut or have "?" for other than ASCII.
func TestHiddenAddressesInReplies(t *testing.T) {
	for _, c := range []struct{ header, secret string }{
		{"From: j\u00fcrgen@listed.example", "rgen"},
		{`From: "secret.` + strings.Repeat("x", 300) + `"@listed.example`, "secret"},
		{"From: " + strings.Repeat("s3cret.", 60) + "s3cret@listed.example", "s3cret"},
		{"From: j\u00fcrgen%listed.example", "rgen"},
	} {
		o, _ := formGate(t, "header listed.example reject", "form listed.example reject")
		o.show = func(address string) string {
			_, domain, _ := strings.Cut(address, "@")
			return "HIDDEN@" + domain
		}
		lines := logged(t, o, 0, func(cl *client) {
			cl.toData("a@example.com")
			cl.send(c.header + "\r\n\r\nx\r\n.\r\n")
			cl.reply("550")
		})
		all := strings.Join(lines, "\n")
		if !strings.Contains(all, "msg=refused") || strings.Contains(all, c.secret) {
			t.Errorf("%.60q: the log shows %q, or no refusal: %s", c.header, c.secret, all)
		}
	}
}

// TestHiddenRecipients wants the recipients who refuse a message hidden in every line.
func TestHiddenRecipients(t *testing.T) {
	o, _ := formGate(t, "header boss@listed.example reject")
	o.policy.ExemptRecipients = []string{"abuse@"}
	o.show = func(string) string { return "HIDDEN" }
	lines := logged(t, o, slog.LevelDebug, func(c *client) {
		c.reply("220")
		c.send("EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<abuse@example.net>\r\nRCPT TO:<s3cret@example.net>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "250", "250", "354"} {
			c.reply(want)
		}
		c.send("From: boss@listed.example\r\n\r\nx\r\n.\r\n")
		c.reply("550")
	})
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, "msg=refused") || !strings.Contains(all, "refused_for=<HIDDEN>") || !strings.Contains(all, "not for <HIDDEN>") || strings.Contains(all, "s3cr") {
		t.Errorf("the log shows the recipient, or no refusal for him:\n%s", all)
	}
}
