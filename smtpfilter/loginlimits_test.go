package smtpfilter_test

import (
	"net/netip"
	"strings"
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
		Rules: wire.Rules{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
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

// TestGuessesAtOnce tries passwords over connections that are open before the first error. The next
// hop is asked about as many wrong ones as errors are allowed, so that a right one among the others
// shows nothing. A login that succeeds is no error.
func TestGuessesAtOnce(t *testing.T) {
	const right, wrong = "AUTH PLAIN AGFubgBzZWNyZXQ=", "AUTH PLAIN AGFubgB3cm9uZw=="
	const allowed, connections = 3, 12
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Replies: map[string]string{wrong: "535 5.7.8 no"}})
	start := time.Now()
	limiter := limit.New(limit.Config{Client: limit.Limits{ErrorsPerMinute: allowed}, Now: func() time.Time { return start }})
	g := newGate(t, gateOptions{nextHop: sink.Addr(), auth: true, limiter: limiter, wire: smtpfilter.Settings{
		TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit, RequireAuth: true,
	}})
	if err := g.target.(*nexthop.SMTP).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := func() *client {
		c := dialTLS(t, g.addr)
		c.reply("220")
		c.send("EHLO client.example\r\n")
		c.reply("250")
		return c
	}
	for range 2 * allowed {
		c := open()
		c.send(right + "\r\n")
		c.reply("235")
		c.Close()
	}
	var clients []*client
	for range connections {
		clients = append(clients, open())
	}
	for i, c := range clients[1:] {
		c.send(wrong + "\r\n")
		if i < allowed {
			c.reply("535")
		} else {
			c.reply("421 4.7.0 Too many errors from your address")
		}
	}
	clients[0].send(right + "\r\n")
	clients[0].reply("421 4.7.0 Too many errors from your address")
	asked := 0
	for _, c := range sink.Commands() {
		if strings.HasPrefix(c.Line, "AUTH ") {
			asked++
		}
	}
	if want := 3 * allowed; asked != want {
		t.Errorf("the next hop was asked %d times, want %d", asked, want)
	}
}
