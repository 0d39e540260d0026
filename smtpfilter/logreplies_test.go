package smtpfilter_test

import (
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
