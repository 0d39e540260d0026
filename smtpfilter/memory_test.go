package smtpfilter_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
)

// lmtpGate returns a gate whose next hop speaks LMTP.
func lmtpGate(t *testing.T, sink *smtptest.Sink, memory smtpfilter.Memory, log *slog.Logger) *gate {
	t.Helper()
	hop, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), ProbeInterval: -1, Reuse: true, LMTP: true})
	if err != nil {
		t.Fatal(err)
	}
	return newGate(t, gateOptions{target: hop, memory: memory, log: log})
}

// greeted returns a client that has sent EHLO.
func greeted(t *testing.T, addr string) *client {
	t.Helper()
	c := dial(t, addr)
	c.reply("220")
	c.send("EHLO client.example\r\n")
	c.reply("250")
	return c
}

// sendAll sends a message to recipients in one transaction, and checks the reply to each
// of them and to the message.
func (c *client) sendAll(body string, to []string, rcpt []string, want string) {
	c.t.Helper()
	c.send("MAIL FROM:<a@example.com>\r\n")
	c.reply("250")
	for i, r := range to {
		c.send("RCPT TO:<" + r + "@example.net>\r\n")
		c.reply(rcpt[i])
	}
	c.send("DATA\r\n")
	c.reply("354")
	c.send("Message-ID: <1@example.com>\r\n\r\n" + body + "\r\n.\r\n")
	c.reply(want)
}

// partialSink returns a sink that accepts messages for all recipients except full.
func partialSink(t *testing.T) *smtptest.Sink {
	return smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		". RCPT TO:<full@example.net>": "552 5.2.2 Quota exceeded",
	}})
}

// TestMemoryOutlivesGate ends the gate between the client's 451 and its retry. The next
// gate must know what the first one knew, even if that was not closed.
func TestMemoryOutlivesGate(t *testing.T) {
	sink := partialSink(t)
	path := filepath.Join(t.TempDir(), "lmtp.partial")
	for _, step := range []struct {
		to, rcpt []string
		want     string
	}{
		{[]string{"b", "full"}, []string{"250", "250"}, "451"},
		{[]string{"full", "b"}, []string{"452", "250"}, "250 2.0.0 Ok: delivered before"},
		{[]string{"full"}, []string{"250"}, "552 5.2.2 Quota exceeded"},
		{[]string{"b"}, []string{"250"}, "250 2.0.0 Ok: queued"}, // the last word was said: it is a new message
	} {
		g := lmtpGate(t, sink, partial.Open(path, partial.Options{}), nil)
		greeted(t, g.addr).sendAll("text", step.to, step.rcpt, step.want)
		g.stop(t)
	}
	if n := len(sink.Messages()); n != 2 {
		t.Errorf("%d messages were delivered, want 2", n)
	}
}

// TestMemoryUnwritable wants mail to go on if nothing can be written, a warning in the
// log, and the running gate to remember.
func TestMemoryUnwritable(t *testing.T) {
	sink := partialSink(t)
	path := filepath.Join(t.TempDir(), "lmtp.partial")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	g := lmtpGate(t, sink, partial.Open(path, partial.Options{}), slog.New(slog.NewTextHandler(&log, nil)))
	c := greeted(t, g.addr)
	c.sendAll("text", []string{"b", "full"}, []string{"250", "250"}, "451 4.3.0")
	const warning = `level=WARN msg="who has the message is not on disk: if the gate restarts before the client comes again, some get it twice"`
	if text := log.String(); !strings.Contains(text, warning) || !strings.Contains(text, "lmtp.partial is not a regular file; remove it") {
		t.Errorf("the log says\n%s", text)
	}
	c.sendAll("text", []string{"b"}, []string{"250"}, "250 2.0.0 Ok: delivered before")
	c.sendAll("other", []string{"b"}, []string{"250"}, "250 2.0.0 Ok: queued")
}

// TestNoMemory wants the same replies without a Memory; who has the message gets it again.
func TestNoMemory(t *testing.T) {
	sink := partialSink(t)
	g := lmtpGate(t, sink, nil, nil)
	c := greeted(t, g.addr)
	for range 2 {
		c.sendAll("text", []string{"b", "full"}, []string{"250", "250"}, "451 4.3.0 Delivered to 1 of 2 recipients")
	}
	if n := len(sink.WaitMessages(2)); n != 2 {
		t.Errorf("%d messages were delivered", n)
	}
}

// TestMemoryStranger has a stranger guess everything about a message except its body. His
// message must be delivered like any other, and the first one exactly once.
func TestMemoryStranger(t *testing.T) {
	sink := partialSink(t)
	g := lmtpGate(t, sink, partial.Open(filepath.Join(t.TempDir(), "lmtp.partial"), partial.Options{}), nil)
	client, stranger := greeted(t, g.addr), greeted(t, g.addr)
	stranger.sendAll("guess 1", []string{"b", "full"}, []string{"250", "250"}, "451")
	client.sendAll("text", []string{"b", "d"}, []string{"250", "250"}, "250 2.0.0 Ok: queued")
	client.sendAll("more", []string{"b", "full"}, []string{"250", "452"}, "250 2.0.0 Ok: queued")
	client.send("MAIL FROM:<a@example.com>\r\nRCPT TO:<full@example.net>\r\nRSET\r\n")
	client.reply("250")
	client.reply("452") // b could come before him, and so he waits, once
	client.reply("250")
	client.sendAll("more", []string{"full"}, []string{"250"}, "552")
	client.sendAll("last", []string{"b", "d", "e"}, []string{"250", "250", "250"}, "250 2.0.0 Ok: queued")
	bodies := map[string]int{}
	for _, m := range sink.Messages() {
		_, body, _ := strings.Cut(string(m.Body), "\r\n\r\n")
		bodies[strings.TrimSpace(body)] += len(m.Rcpts)
	}
	if bodies["text"] != 2 || bodies["more"] != 1 || bodies["last"] != 3 {
		t.Errorf("delivered: %v", bodies)
	}
}

// outcomes is a Memory that notes what becomes of each recipient.
type outcomes struct{ settled []partial.Outcome }

func (*outcomes) Recall(string, string) []partial.Entry { return nil }
func (*outcomes) Turn(string, string) bool              { return true }
func (*outcomes) Knows(partial.Sum) bool                { return true }
func (o *outcomes) Settle(_ string, _ partial.Sum, all []partial.Outcome) error {
	o.settled = append(o.settled, all...)
	return nil
}

// TestDeferredOnce wants a recipient that the next hop has deferred at RCPT to be settled
// once: its turns decide who goes first.
func TestDeferredOnce(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		"RCPT TO:<later@example.net>": "451 4.2.1 later",
	}})
	memory := &outcomes{}
	g := lmtpGate(t, sink, memory, nil)
	greeted(t, g.addr).sendAll("text", []string{"b", "later"}, []string{"250", "451"}, "250")
	g.stop(t)
	var got []string
	for _, o := range memory.settled {
		got = append(got, o.To)
	}
	if want := []string{"b@example.net", "later@example.net"}; !slices.Equal(got, want) {
		t.Errorf("settled %q, want %q", got, want)
	}
}
