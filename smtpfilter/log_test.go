package smtpfilter_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// logged runs a session against a gate and returns the lines of its log.
func logged(t *testing.T, o gateOptions, level slog.Level, session func(*client)) []string {
	t.Helper()
	var buf lockedBuffer
	o.log = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: level}))
	g := newGate(t, o)
	session(dial(t, g.addr))
	g.stop(t)
	text := strings.TrimSpace(buf.String())
	if text == "" {
		return nil
	}
	// The tests send their sessions at once, which is noticed; it is not what they
	// are about.
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.Contains(line, " msg=noticed ")
	})
}

// checkLines compares a log with the parts that each line must have.
func checkLines(t *testing.T, lines []string, want ...[]string) {
	t.Helper()
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d has no %s:\n%s", i+1, part, lines[i])
			}
		}
	}
}

// TestDecisionLog checks that each decision is one line, what the line says, and that it
// shows addresses as configured, in replies too.
func TestDecisionLog(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{
		"RCPT TO:<no@example.net>": "550 5.1.1 <no@example.net> unknown",
	}})
	lines := logged(t, gateOptions{
		nextHop: sink.Addr(),
		checker: mustJudge(t, "envelope spam@listed.example reject why not", "header boss@listed.example monitor"),
		policy:  smtpfilter.Policy{HeaderFields: []string{"From"}},
		show:    func(string) string { return "HIDDEN" },
	}, slog.LevelInfo, func(c *client) {
		c.reply("220")
		c.send("EHLO client.example\r\nMAIL FROM:<spam@listed.example>\r\nRCPT TO:<b@example.net>\r\nRSET\r\n" +
			"MAIL FROM:<a@example.com>\r\nRCPT TO:<no@example.net>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "550", "250", "250", "550", "250", "354"} {
			c.reply(want)
		}
		c.send("From: boss@listed.example\r\nMessage-ID: <1@example.com>\r\n\r\nsecret body\r\n.\r\n")
		c.reply("250")
		c.send("QUIT\r\n")
		c.reply("221")
	})
	checkLines(t, lines,
		[]string{`msg=refused`, `action=reject`, `generation=7`, `client=127.0.0.1:`, `helo=client.example`, `tls=none`, `from=<HIDDEN>`,
			`to=<HIDDEN>`, `identity=envelope`, `list=test`, `entry=HIDDEN`, `source=lists/test.txt:3`, `reason="why not"`,
			`reply="550 5.7.1 <HIDDEN> refused`, `duration=`},
		[]string{`msg="refused by the next hop"`, `next_hop="550 5.1.1 <HIDDEN> unknown"`},
		[]string{`msg=monitored`, `action=monitor`, `identity=From`, `sender=HIDDEN`, `would=reject`, `message_id=<1@example.com>`},
		[]string{`msg=accepted`, `action=accept`, `next_hop="250 `, `size=71`, `message_id=<1@example.com>`},
	)
	for _, secret := range []string{"listed.example>", "b@example.net", "no@example.net", "secret body"} {
		if strings.Contains(strings.Join(lines, "\n"), secret) {
			t.Errorf("the log shows %q", secret)
		}
	}
}

// TestUnknownOutcomeIsLogged has a next hop receive a whole message and not reply.
func TestUnknownOutcomeIsLogged(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{".": smtptest.Close}})
	lines := logged(t, gateOptions{nextHop: sink.Addr()}, slog.LevelInfo, func(c *client) {
		c.toData("a@example.com")
		c.send("x: y\r\n.\r\n")
		c.reply("451 4.4.2")
	})
	checkLines(t, lines, []string{`level=ERROR`, `msg="no answer from the next hop"`, `outcome=unknown`, `from=<a@example.com>`, `to=<b@example.net>`})
}

// TestDiscardIsLogged wants a discarded message in the log with its Message-ID.
func TestDiscardIsLogged(t *testing.T) {
	sink := smtptest.NewSink(t)
	lines := logged(t, gateOptions{nextHop: sink.Addr(), checker: mustJudge(t, "envelope a@listed.example discard")}, slog.LevelInfo, func(c *client) {
		c.toData("a@listed.example")
		c.send("Message-ID: <7@listed.example>\r\n\r\nx\r\n.\r\n")
		c.reply("250")
	})
	checkLines(t, lines, []string{`msg=discarded`, `action=discard`, `message_id=<7@listed.example>`, `list=test`})
}

// TestUnconfirmedIsLogged wants no source in the line if a filter alone decided.
func TestUnconfirmedIsLogged(t *testing.T) {
	sink := smtptest.NewSink(t)
	lines := logged(t, gateOptions{nextHop: sink.Addr(), checker: mustJudge(t, "envelope a@listed.example unconfirmed")}, slog.LevelInfo, func(c *client) {
		c.reply("220")
		c.send("HELO client.example\r\nMAIL FROM:<a@listed.example>\r\nRCPT TO:<b@example.net>\r\n")
		for _, want := range []string{"250", "250", "550"} {
			c.reply(want)
		}
	})
	checkLines(t, lines, []string{`msg=refused`, `list=test`, `confirmed=false`})
	if strings.Contains(lines[0], "source=") {
		t.Errorf("a source that nobody knows:\n%s", lines[0])
	}
}

// TestConnectionsAreLoggedAtDebug wants connections at debug, and those of clients that
// break the rules at info.
func TestConnectionsAreLoggedAtDebug(t *testing.T) {
	sink := smtptest.NewSink(t)
	for _, tt := range []struct {
		level slog.Level
		send  string
		want  [][]string
	}{
		{slog.LevelInfo, "QUIT\r\n", nil},
		{slog.LevelDebug, "QUIT\r\n", [][]string{{`level=DEBUG`, `msg=disconnected`, `client=127.0.0.1:`, `messages=0`}}},
		{slog.LevelInfo, "NOOP\n", [][]string{{`level=INFO`, `msg=disconnected`, `reply="500 5.5.2 Commands must end in CRLF"`}}},
	} {
		lines := logged(t, gateOptions{nextHop: sink.Addr()}, tt.level, func(c *client) {
			c.reply("220")
			c.send(tt.send)
			c.readReply()
			c.closed()
			c.Close()
		})
		checkLines(t, lines, tt.want...)
	}
}

// TestBadCommandsAreLogged wants a line for a command that is refused before a sender is
// known, without an address if the log hides addresses.
func TestBadCommandsAreLogged(t *testing.T) {
	sink := smtptest.NewSink(t)
	session := func(c *client) {
		c.reply("220")
		c.send("HELO client.example\r\nMAIL FROM:<a@example.com> SIZE=1000\r\nMAIL FROM:<a@example.com> X-NONE=1\r\nRCPT TO:<b>\r\nRCPT a@example.com\r\nNOPE\r\nQUIT\r\n")
		for _, want := range []string{"250", "552", "555", "501", "501", "500", "221"} {
			c.reply(want)
		}
	}
	o := gateOptions{nextHop: sink.Addr(), wire: smtpfilter.Settings{Rules: wire.Rules{MaxMessageBytes: 100}}}
	checkLines(t, logged(t, o, slog.LevelInfo, session),
		[]string{`msg="command refused"`, `command="MAIL FROM:<a@example.com> SIZE=1000"`, `reply="552 5.3.4`, `helo=client.example`},
		[]string{`msg="command refused"`, `command="MAIL FROM:<a@example.com> X-NONE=1"`, `reply="555 5.5.4`},
		[]string{`msg="command refused"`, `command="RCPT TO:<b>"`, `reply="501 5.1.3`},
		[]string{`msg="command refused"`, `command="RCPT a@example.com"`, `reply="501 5.5.4`},
	)
	o.target, o.show = nil, func(string) string { return "HIDDEN" }
	lines := logged(t, o, slog.LevelInfo, session)
	checkLines(t, lines, []string{`command=MAIL`}, []string{`command=MAIL`}, []string{`command=RCPT`}, []string{`command=RCPT`})
	if strings.Contains(strings.Join(lines, ""), "example.com") {
		t.Errorf("an address is shown: %q", lines)
	}
}

// TestExemptIsLogged wants the reason in the line of listed mail that is accepted.
func TestExemptIsLogged(t *testing.T) {
	sink := smtptest.NewSink(t)
	lines := logged(t, gateOptions{nextHop: sink.Addr(), checker: mustJudge(t, "envelope a@listed.example reject")}, slog.LevelInfo, func(c *client) {
		c.reply("220")
		c.send("HELO client.example\r\nMAIL FROM:<a@listed.example>\r\nRCPT TO:<postmaster@example.net>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "250", "354"} {
			c.reply(want)
		}
		c.send("x: y\r\n.\r\n")
		c.reply("250")
	})
	checkLines(t, lines, []string{`msg=accepted`, `action=accept`, `list=test`, `exempt=recipient`})
}
