package smtpfilter_test

import (
	"net/netip"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// TestLoginEndsWithXCLIENT wants no mail of a second client, named by a trusted proxy, on
// the connection to the next hop where the first one has logged in.
func TestLoginEndsWithXCLIENT(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}})
	g := newGate(t, gateOptions{nextHop: sink.Addr(), auth: true, wire: smtpfilter.Settings{
		TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit,
		Rules: wire.Rules{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}})
	if err := g.target.(*nexthop.SMTP).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := dialTLS(t, g.addr)
	c.reply("220")
	c.send("EHLO ann.example\r\n")
	c.reply("250")
	c.send("AUTH PLAIN AGFubgBzZWNyZXQ=\r\n")
	c.reply("235")
	c.send("MAIL FROM:<ann@example.com>\r\nRCPT TO:<b@example.net>\r\nRSET\r\n")
	for range 3 {
		c.reply("250")
	}
	c.send("XCLIENT ADDR=192.0.2.1\r\n")
	c.reply("220")
	c.send("EHLO bob.example\r\n")
	c.reply("250")
	c.send("MAIL FROM:<bob@example.com>\r\nRCPT TO:<b@example.net>\r\n")
	c.reply("250")
	c.reply("250")
	conns := map[string]int{}
	for _, command := range sink.Commands() {
		conns[command.Line] = command.Conn
	}
	login, ann, bob := conns["AUTH PLAIN AGFubgBzZWNyZXQ="], conns["MAIL FROM:<ann@example.com>"], conns["MAIL FROM:<bob@example.com>"]
	if login == 0 || ann != login || bob == 0 || bob == login {
		t.Errorf("AUTH on connection %d, MAIL of who logged in on %d, of the next client on %d", login, ann, bob)
	}
}
