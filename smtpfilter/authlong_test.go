package smtpfilter_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// TestLongChallenge wants a challenge of any length that RFC 4954 allows to reach the
// client unchanged, and no part of one that is longer or not base64.
func TestLongChallenge(t *testing.T) {
	const most = wire.MaxAuthLine - len("334 \r\n")
	for _, c := range []struct {
		name, code, challenge string
		passes                bool
	}{
		{"one line of a reply", "334 ", strings.Repeat("QUJD", 126), true},
		{"more than a line of a reply", "334 ", strings.Repeat("QUJD", 128), true},
		{"more than a reply line that is read", "334 ", strings.Repeat("QUJD", 1100), true},
		{"the longest", "334 ", strings.Repeat("QUJD", most/4), true},
		{"longer", "334 ", strings.Repeat("QUJD", most/4+1), false},
		{"endless", "334 ", strings.Repeat("QUJD", 100_000), false},
		{"no base64", "334 ", strings.Repeat("no base64 ", 60), false},
		{"two lines", "334-", strings.Repeat("QUJD", 128) + "\n334 QUJD", false},
		{"ESC", "334 ", "\x1b[2J", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{
				Extensions: []string{"PIPELINING", "AUTH GSSAPI"},
				Replies:    map[string]string{"AUTH": c.code + c.challenge, "QUJD": "235 2.7.0 ok"},
			})
			hop, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", Identity: nexthop.IdentityNone})
			if err != nil {
				t.Fatal(err)
			}
			hop.WaitKnown(t.Context())
			g := newGate(t, gateOptions{target: hop, auth: true, wire: smtpfilter.Settings{TLS: smtptest.ServerTLS()}})
			client := dial(t, g.addr)
			client.reply("220")
			client.send("EHLO client.example\r\nSTARTTLS\r\n")
			client.reply("250")
			client.reply("220")
			secure := tls.Client(client.Conn, &tls.Config{RootCAs: smtptest.Roots(), ServerName: smtptest.ServerName})
			client.Conn, client.in = secure, bufio.NewReader(secure)
			client.send("EHLO client.example\r\n")
			client.reply("250")
			client.send("AUTH GSSAPI\r\n")
			if !c.passes {
				client.reply("454 4.7.0 ")
				client.send("NOOP\r\n")
				client.reply("250")
				return
			}
			if got := client.reply("334 "); got != "334 "+c.challenge+"\r\n" {
				t.Errorf("%d bytes: %s", len(got), fmt.Sprintf("%.20q", got))
			}
			client.send("QUJD\r\n")
			client.reply("235")
		})
	}
}
