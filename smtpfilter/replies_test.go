package smtpfilter_test

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/logging"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// TestHugeReply has the next hop send the longest reply that is read, with bytes that
// control terminals, at each point of a session. The client must receive a bounded,
// printable reply, and no line of the log may be longer than 4 KiB.
func TestHugeReply(t *testing.T) {
	huge := func(code string) string {
		line := code + "-" + strings.Repeat("\x1b[31m\a\xfc <b@example.net> ", 180)
		return strings.Repeat(line[:4000]+"\n", 255) + code + " the last line"
	}
	for _, place := range []string{"MAIL", "RCPT", "DATA", ".", "GREETING", "EHLO", "421"} {
		t.Run(place, func(t *testing.T) {
			code, verb := "550", place
			if place == "421" {
				code, verb = "421", "RCPT"
			}
			sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{verb: huge(code)}})
			var buf lockedBuffer
			opened, err := logging.New(logging.Options{Stderr: &buf})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			g := newGate(t, gateOptions{nextHop: sink.Addr(), log: opened.Logger})
			c := dial(t, g.addr)
			c.reply("220")
			c.send("HELO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n")
			c.reply("250")
			c.reply("250")
			reply, err := c.readReply()
			if place == "DATA" || place == "." {
				c.send("DATA\r\n")
				c.reply("354")
				c.send("x: y\r\n.\r\n")
				reply, err = c.readReply()
			}
			if err != nil {
				t.Fatal(err)
			}
			want := code
			if place == "GREETING" || place == "EHLO" {
				want = "451 4.4.1"
			}
			if !strings.HasPrefix(reply, want) || len(reply) > wire.MaxReplyBytes || strings.Count(reply, "\n") > wire.MaxReplyLines {
				t.Errorf("%d bytes: %.100q", len(reply), reply)
			}
			for line := range strings.Lines(reply) {
				if text := strings.TrimSuffix(line, "\r\n"); len(line) > wire.MaxReplyLine || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("%d bytes: %q", len(line), line)
				}
			}
			c.Close()
			g.stop(t)
			checkShort(t, buf.String(), "client=127.0.0.1")
		})
	}
}

// TestManyRecipients wants a short line for a message to 1,000 recipients, with their
// number.
func TestManyRecipients(t *testing.T) {
	sink := smtptest.NewSink(t)
	var buf lockedBuffer
	opened, err := logging.New(logging.Options{Stderr: &buf})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	g := newGate(t, gateOptions{nextHop: sink.Addr(), log: opened.Logger})
	c := dial(t, g.addr)
	c.reply("220")
	c.send("HELO client.example\r\nMAIL FROM:<a@example.com>\r\n")
	c.reply("250")
	c.reply("250")
	for i := range 1000 {
		c.send(fmt.Sprintf("RCPT TO:<%04d.recipient@example.net>\r\n", i))
		c.reply("250")
	}
	c.send("DATA\r\n")
	c.reply("354")
	c.send("x: y\r\n.\r\n")
	c.reply("250")
	c.Close()
	g.stop(t)
	checkShort(t, buf.String(), "msg=accepted", "id=", "<0000.recipient@example.net>,<0001.recipient@example.net>", " more", "next_hop=\"250 ")
}

// checkShort checks that each line of a log has at most 4 KiB, and that the log has
// some parts.
func checkShort(t *testing.T, log string, parts ...string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if len(line) > logging.MaxLine {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
	for _, part := range parts {
		if !strings.Contains(log, part) {
			t.Errorf("no %s in %s", part, log)
		}
	}
}
