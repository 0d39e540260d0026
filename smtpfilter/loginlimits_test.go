package smtpfilter_test

import (
	"net/netip"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// TestLoginLimits counts a login over all its connections, however the client spells it, and
// only once it has succeeded.
func TestLoginLimits(t *testing.T) {
	const ann, annLogin, wrong, otto = "AUTH PLAIN AGFubgBzZWNyZXQ=", "AUTH LOGIN QU5O", "AUTH PLAIN AGFubgB3cm9uZw==", "AUTH PLAIN AG90dG8Ac2VjcmV0"
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN LOGIN"}, Replies: map[string]string{
		annLogin: "334 UGFzc3dvcmQ6", "c2VjcmV0": "235 2.7.0 Ok", wrong: "535 5.7.8 no",
	}})
	start := time.Now()
	limiter := limit.New(limit.Config{Login: limit.LoginLimits{MessagesPerMinute: 2}, Now: func() time.Time { return start }})
	g := newGate(t, gateOptions{nextHop: sink.Addr(), auth: true, limiter: limiter, wire: smtpfilter.Settings{
		TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}})
	if err := g.target.(*nexthop.SMTP).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	const allowed, limited = "250", "451 4.7.1 Too many messages with your login, try again in 30s"
	// Each step is a connection: commands and the beginnings of their replies.
	for _, steps := range [][]string{
		{wrong, "535", "MAIL FROM:<a@example.com>", allowed, "RSET", "250", "MAIL FROM:<a@example.com>", allowed, "RSET", "250", "MAIL FROM:<a@example.com>", allowed},
		{ann, "235", "MAIL FROM:<a@example.com>", allowed},
		{annLogin, "334", "c2VjcmV0", "235", "MAIL FROM:<a@example.com>", allowed},
		{ann, "235", "MAIL FROM:<a@example.com>", limited, "MAIL FROM:<b@example.com>", limited},
		{annLogin, "334", "c2VjcmV0", "235", "MAIL FROM:<a@example.com>", limited},
		{otto, "235", "MAIL FROM:<a@example.com>", allowed},
		// A login that a trusted proxy names counts with the others.
		{"XCLIENT ADDR=192.0.2.1 LOGIN=Ann", "220", "EHLO c.example", "250", "MAIL FROM:<a@example.com>", limited},
		{"XCLIENT ADDR=192.0.2.1 LOGIN=otto", "220", "EHLO c.example", "250", "MAIL FROM:<a@example.com>", allowed, "RSET", "250", "MAIL FROM:<a@example.com>", limited},
		// Another client on the connection where somebody has logged in has no login.
		{ann, "235", "XCLIENT ADDR=192.0.2.2", "220", "EHLO c.example", "250", "MAIL FROM:<a@example.com>", allowed},
	} {
		c := dialTLS(t, g.addr)
		c.reply("220")
		c.send("EHLO client.example\r\n")
		c.reply("250")
		for i := 0; i < len(steps); i += 2 {
			c.send(steps[i] + "\r\n")
			c.reply(steps[i+1])
		}
		c.Close()
	}
}
