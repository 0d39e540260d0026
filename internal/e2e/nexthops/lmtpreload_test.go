package nexthops

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestLMTPReload replaces a gate's SMTP next hop by an LMTP next hop and back. The gate
// remembers who has a message with both.
func TestLMTPReload(t *testing.T) {
	t.Parallel()
	smtp := smtptest.NewSink(t)
	lmtp := smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		". RCPT TO:<full@example.net>": "452 4.2.2 <full@example.net> mailbox full",
	}})
	before := harness.Setup{NextHop: "smtp://" + smtp.Addr(), Keys: map[string]string{"next_hop": "merge = true"}}
	g := harness.StartGate(t, before)
	warning := g.WaitRecord("configuration").Text("warning")
	if !strings.HasPrefix(warning, "config.toml:") || !strings.Contains(warning, "next_hop.merge: has no effect") {
		t.Errorf("the warning of merge is %q", warning)
	}
	reload := func(s harness.Setup) {
		t.Helper()
		n := len(g.Records("reloaded"))
		harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
		g.Signal(syscall.SIGHUP)
		harness.WaitFor(t, "the reload", func() bool { return len(g.Records("reloaded")) > n })
	}
	send := func(want string, to ...string) {
		t.Helper()
		c := harness.MustDial(t, g.Addr)
		defer c.Close()
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		for _, rcpt := range to {
			c.Want(t, "RCPT TO:<"+rcpt+"@example.net>", "250")
		}
		c.Want(t, "DATA", "354")
		c.Want(t, harness.SmallMessage("a@example.com", "reload")+".", want)
	}

	reload(harness.Setup{NextHop: "lmtp://" + lmtp.Addr()})
	send("451 4.3.0 Delivered to 2 of 3 recipients", "b", "c", "full")
	send("250 2.0.0 Ok: delivered before", "b")
	reload(before)
	send("250 2.0.0 Ok: delivered before", "c")
	send("250 2.0.0 Ok: queued", "full")
	g.Stop()
	if n, m := len(lmtp.Messages()), len(smtp.Messages()); n != 1 || m != 1 {
		t.Errorf("%d messages by LMTP and %d by SMTP, want one each", n, m)
	}
}
