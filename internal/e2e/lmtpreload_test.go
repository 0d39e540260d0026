package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/smtptest"
)

// TestLMTPReload gives a running gate an LMTP server in place of an SMTP server, and
// then the other way round: what it knows of a message holds with both.
func TestLMTPReload(t *testing.T) {
	t.Parallel()
	smtp := smtptest.NewSink(t)
	lmtp := smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		". RCPT TO:<full@example.net>": "452 4.2.2 <full@example.net> mailbox full",
	}})
	before := setup{nextHop: "smtp://" + smtp.Addr(), keys: map[string]string{"next_hop": "merge = true"}}
	g := startGate(t, before)
	warning := g.waitRecord("configuration").string("warning")
	if !strings.HasPrefix(warning, "config.toml:") || !strings.Contains(warning, "next_hop.merge: has no effect") {
		t.Errorf("the warning of merge is %q", warning)
	}
	reload := func(s setup) {
		t.Helper()
		n := len(g.records("reloaded"))
		writeFile(t, filepath.Join(g.dir, "config.toml"), s.config())
		g.signal(syscall.SIGHUP)
		pollFor(t, "the reload", func() bool { return len(g.records("reloaded")) > n })
	}
	send := func(want string, to ...string) {
		t.Helper()
		c := mustDial(t, g.addr)
		defer c.Close()
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		for _, rcpt := range to {
			c.want(t, "RCPT TO:<"+rcpt+"@example.net>", "250")
		}
		c.want(t, "DATA", "354")
		c.want(t, letter("a@example.com", "reload")+".", want)
	}

	reload(setup{nextHop: "lmtp://" + lmtp.Addr()})
	send("451 4.3.0 Delivered to 2 of 3 recipients", "b", "c", "full")
	send("250 2.0.0 Ok: delivered before", "b")
	reload(before)
	send("250 2.0.0 Ok: delivered before", "c")
	send("250 2.0.0 Ok: queued", "full")
	g.stop()
	if n, m := len(lmtp.Messages()), len(smtp.Messages()); n != 1 || m != 1 {
		t.Errorf("%d messages by LMTP and %d by SMTP, want one each", n, m)
	}
}
