package smtpfilter_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// programTarget is a Target that another program has written. It returns the same replies
// to every message.
type programTarget struct {
	rcpt, data, commit wire.Reply
	each               []wire.Reply
	noMessage          bool
}

func (p programTarget) Begin(nexthop.Envelope) nexthop.Transaction { return p }
func (programTarget) Extensions() wire.Extensions                  { return wire.Extensions{} }
func (programTarget) String() string                               { return "a program's target" }
func (programTarget) Close() error                                 { return nil }

func (p programTarget) Rcpt(context.Context, string, []string) (wire.Reply, error) {
	return p.rcpt, nil
}

func (p programTarget) Data(context.Context, nexthop.Format) (nexthop.Message, wire.Reply, error) {
	if p.noMessage {
		return nil, p.data, nil
	}
	return programMessage{p}, p.data, nil
}

func (programTarget) Abort() {}

type programMessage struct{ programTarget }

func (programMessage) Write(p []byte) (int, error)                  { return len(p), nil }
func (programMessage) Flush() error                                 { return nil }
func (m programMessage) Commit(context.Context) (wire.Reply, error) { return m.commit, nil }
func (m programMessage) Replies() []wire.Reply                      { return m.each }

// TestInvalidNextHopReply wants a 4xx reply and a line in the log for each reply of a
// Target that is not one final reply, and the Target's own reply otherwise.
func TestInvalidNextHopReply(t *testing.T) {
	ok := wire.NewReply(250, "2.0.0 Ok")
	invalid := map[string]wire.Reply{
		"zero":           {},
		"354":            wire.NewReply(354, "Go ahead"),
		"code 600":       wire.NewReply(600, "2.0.0 Ok"),
		"code 1250":      wire.NewReply(1250, "2.0.0 Ok"),
		"no line":        {Code: 250},
		"CRLF":           wire.NewReply(250, "2.0.0 Ok\r\n250 2.0.0 Ok"),
		"LF, lines":      wire.NewReply(250, "2.0.0 a", "2.0.0 b\nc"),
		"CR in a 5xx":    wire.NewReply(550, "5.7.1 No\rno"),
		"NUL":            wire.NewReply(250, "2.0.0 Ok\x00"),
		"negative codes": wire.NewReply(-250, "2.0.0 Ok"),
	}
	type row struct {
		name   string
		target programTarget
		want   string // the reply to the message
		log    string
	}
	rows := []row{
		{"valid", programTarget{rcpt: ok, commit: ok}, "250 2.0.0 Ok", "msg=accepted"},
		{"refused at RCPT", programTarget{rcpt: wire.NewReply(550, "5.1.1 nobody")}, "550 5.1.1 nobody", "refused by the next hop"},
		{"refused at DATA", programTarget{rcpt: ok, data: wire.NewReply(452, "4.3.1 full"), noMessage: true}, "452 4.3.1 full", "refused by the next hop"},
		{"refused at the dot", programTarget{rcpt: ok, commit: wire.NewReply(554, "5.6.0 no", "5.6.0 really")}, "554-5.6.0 no", "refused by the next hop"},
		{"no message, positive reply", programTarget{rcpt: ok, data: ok, noMessage: true}, "451 4.4.1", "next hop failed"},
		{"reply of one recipient", programTarget{rcpt: ok, commit: ok, each: []wire.Reply{wire.NewReply(250, "2.0.0\r\n")}}, "451 4.4.2", "no answer from the next hop"},
	}
	for name, r := range invalid {
		rows = append(rows,
			row{name + " at RCPT", programTarget{rcpt: r}, "451 4.4.1", "next hop failed"},
			row{name + " at DATA", programTarget{rcpt: ok, data: r, noMessage: true}, "451 4.4.1", "next hop failed"},
			row{name + " at the dot", programTarget{rcpt: ok, commit: r}, "451 4.4.2", "no answer from the next hop"})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var log lockedBuffer
			g := newGate(t, gateOptions{target: row.target, log: slog.New(slog.NewTextHandler(&log, nil))})
			c := dial(t, g.addr)
			c.reply("220")
			c.send("HELO client.example\r\nMAIL FROM:<a@example.com>\r\n")
			c.reply("250")
			c.reply("250")
			c.send("RCPT TO:<b@example.net>\r\n")
			if row.target.commit.IsZero() && !row.target.noMessage && !strings.HasSuffix(row.name, "dot") {
				c.reply(row.want)
			} else {
				c.reply("250")
				c.send("DATA\r\n")
				c.reply("354")
				c.send("Subject: x\r\n\r\nhello\r\n.\r\n")
				c.reply(row.want)
			}
			if !strings.Contains(log.String(), row.log) {
				t.Errorf("no %q in the log:\n%s", row.log, log.String())
			}
		})
	}
}

// authTarget is a programTarget whose clients can log in.
type authTarget struct{ programTarget }

func (a authTarget) Authenticate(context.Context, nexthop.Client, string, func(wire.Reply) (string, error)) (nexthop.Login, wire.Reply, error) {
	return nil, a.rcpt, nil
}

func (authTarget) Extensions() wire.Extensions { return wire.Extensions{"AUTH": {"PLAIN"}} }

// TestInvalidAuthReply wants 454 for a positive reply to AUTH without a login, and for a
// reply that is not one.
func TestInvalidAuthReply(t *testing.T) {
	for _, reply := range []wire.Reply{wire.NewReply(235, "2.7.0 Welcome"), wire.NewReply(535, "5.7.8 no\r\n235 yes"), {}} {
		g := newGate(t, gateOptions{target: authTarget{programTarget{rcpt: reply}}, auth: true,
			wire: smtpfilter.Settings{TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit}})
		c := dialTLS(t, g.addr)
		c.reply("220")
		c.send("EHLO client.example\r\n")
		c.reply("250")
		c.send("AUTH PLAIN AGEAYg==\r\n")
		c.reply("454 4.7.0")
	}
}
