package restarts

import (
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestLMTPHandover hands a gate over while clients send messages that the next hop takes
// for some recipients only. Each of the two processes knows what the next hop told the
// other one.
func TestLMTPHandover(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		". RCPT TO:<full@example.net>": "552 5.2.2 <full@example.net> Quota exceeded",
	}})
	g := startSuccession(t, harness.Setup{NextHop: "lmtp://" + sink.Addr()}, harness.Binary(t))
	const had, some = "250 2.0.0 Ok: delivered before", "451 4.3.0 Delivered to 1 of 2 recipients"
	begin := func(c *harness.Client) {
		t.Helper()
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
	}
	end := func(c *harness.Client, subject, want string, to ...string) {
		t.Helper()
		for _, rcpt := range to {
			c.Want(t, "RCPT TO:<"+rcpt+"@example.net>", "250")
		}
		c.Want(t, "DATA", "354")
		c.Want(t, harness.SmallMessage("a@example.com", subject)+".", want)
	}

	first, second := harness.MustDial(t, g.Addr), harness.MustDial(t, g.Addr)
	begin(first)
	begin(second)
	g.HandOver()

	// The old process delivers the first message, and the new one knows the outcome.
	end(first, "m1", some, "b", "full")
	c := harness.MustDial(t, g.Addr)
	begin(c)
	c.Want(t, "RCPT TO:<full@example.net>", "452")
	end(c, "m1", had, "b")

	// The new one delivers the second message, and the old one knows the outcome.
	begin(c)
	end(c, "m2", some, "d", "full")
	end(second, "m2", had, "d")

	begin(c)
	end(c, "m1", "552 5.2.2 <full@example.net> Quota exceeded", "full")
	g.Stop()
	g.WantEnded(2)
	if n := len(sink.Messages()); n != 2 {
		t.Errorf("the next hop has taken %d messages, want 2", n)
	}
	harness.CheckSink(t, sink)
}
