package e2e

import (
	"testing"

	"spamgate/internal/smtptest"
)

// TestLMTPHandover hands a gate over while messages are under way that the next hop
// takes for some recipients only. Each of the two processes knows what the other one
// was told.
func TestLMTPHandover(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		". RCPT TO:<full@example.net>": "552 5.2.2 <full@example.net> Quota exceeded",
	}})
	g := startReaped(t, setup{nextHop: "lmtp://" + sink.Addr()}, binary(t))
	const had, some = "250 2.0.0 Ok: delivered before", "451 4.3.0 Delivered to 1 of 2 recipients"
	begin := func(c *client) {
		t.Helper()
		c.want(t, "MAIL FROM:<a@example.com>", "250")
	}
	end := func(c *client, subject, want string, to ...string) {
		t.Helper()
		for _, rcpt := range to {
			c.want(t, "RCPT TO:<"+rcpt+"@example.net>", "250")
		}
		c.want(t, "DATA", "354")
		c.want(t, letter("a@example.com", subject)+".", want)
	}

	first, second := mustDial(t, g.addr), mustDial(t, g.addr)
	begin(first)
	begin(second)
	g.handOver()

	// The old process is told of the first message, and the new one knows.
	end(first, "m1", some, "b", "full")
	c := mustDial(t, g.addr)
	begin(c)
	c.want(t, "RCPT TO:<full@example.net>", "452")
	end(c, "m1", had, "b")

	// The new one is told of the second message, and the old one knows.
	begin(c)
	end(c, "m2", some, "d", "full")
	end(second, "m2", had, "d")

	begin(c)
	end(c, "m1", "552 5.2.2 <full@example.net> Quota exceeded", "full")
	g.stop()
	g.wantEnded(2)
	if n := len(sink.Messages()); n != 2 {
		t.Errorf("the next hop has taken %d messages, want 2", n)
	}
	checkSink(t, sink)
}
