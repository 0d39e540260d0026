package smtpfilter_test

import (
	"log/slog"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/nexthop"
)

// newHop returns a next hop that connects to a sink.
func newHop(t *testing.T, config nexthop.SMTPConfig) *nexthop.SMTP {
	t.Helper()
	config.ProbeInterval = -1
	hop, err := nexthop.NewSMTP(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hop.Close() })
	return hop
}

// TestServerIsLogged wants the server that replied in the log, of several next hops, and
// not those that were only tried.
func TestServerIsLogged(t *testing.T) {
	gone := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"GREETING": "421 later"}})
	there := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"RCPT TO:<no@example.net>": "550 5.1.1 no"}})
	g, err := nexthop.NewGroup([]nexthop.Target{
		newHop(t, nexthop.SMTPConfig{Addr: gone.Addr()}), newHop(t, nexthop.SMTPConfig{Addr: there.Addr()}),
	}, nexthop.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	lines := logged(t, gateOptions{target: g}, slog.LevelInfo, func(c *client) {
		c.reply("220")
		c.send("EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<no@example.net>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "550", "250", "354"} {
			c.reply(want)
		}
		c.send("x: y\r\n.\r\n")
		c.reply("250")
	})
	server := " server=smtp://" + there.Addr() + " "
	checkLines(t, lines, []string{`msg="refused by the next hop"`, server}, []string{`msg=accepted`, server})
}

// TestNoXCLIENT wants a next hop that does not offer the required XCLIENT to be
// unavailable to the client, and the reason in the log.
func TestNoXCLIENT(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newHop(t, nexthop.SMTPConfig{Addr: sink.Addr(), Identity: nexthop.IdentityXCLIENT})
	lines := logged(t, gateOptions{target: hop}, slog.LevelInfo, func(c *client) {
		c.reply("220")
		c.send("EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n")
		for _, want := range []string{"250", "250", "451 4.4.1"} {
			c.reply(want)
		}
	})
	checkLines(t, lines, []string{`msg="next hop failed"`, "smtpd_authorized_xclient_hosts"})
}
