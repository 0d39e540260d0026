package smtpfilter_test

import (
	"log/slog"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
)

// TestNextHopRefusesSession has a next hop, and then the first of two, answer each command with
// what is about the gate's own session. The client must not receive it: it gets 451, or the other
// server's answer, and a line of the log has the reply.
func TestNextHopRefusesSession(t *testing.T) {
	for _, verb := range []string{"GREETING", "EHLO", "XCLIENT", "MAIL", "RCPT", "DATA", "."} {
		for _, reply := range []string{"530 5.7.0 Must issue a STARTTLS command first", "503 5.5.1 not now", "538 5.7.11 encrypt", "502 5.5.1 what"} {
			extensions := []string{"PIPELINING"}
			if verb == "XCLIENT" {
				extensions = append(extensions, "XCLIENT ADDR")
			}
			replies := map[string]string{verb: reply}
			if verb == "EHLO" {
				replies["HELO"] = reply
			}
			for _, group := range []bool{false, true} {
				sink := smtptest.NewSink(t, smtptest.Config{Extensions: extensions, Replies: replies})
				var log lockedBuffer
				logger := slog.New(slog.NewTextHandler(&log, nil))
				var target nexthop.Target = newHop(t, nexthop.SMTPConfig{Addr: sink.Addr()})
				if group {
					good := smtptest.NewSink(t)
					var err error
					if target, err = nexthop.NewGroup([]nexthop.Target{target, newHop(t, nexthop.SMTPConfig{Addr: good.Addr()})}, nexthop.GroupConfig{Logger: logger}); err != nil {
						t.Fatal(err)
					}
				}
				late := verb == "DATA" || verb == "."
				want := "451 4.4.1"
				if group && !late {
					want = "250"
				}
				g := newGate(t, gateOptions{target: target, log: logger})
				c := dial(t, g.addr)
				c.reply("220")
				c.send("EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n")
				c.reply("250")
				c.reply("250")
				if !late {
					c.reply(want)
				} else {
					c.reply("250")
					c.send("DATA\r\n")
					c.reply("354")
					c.send("x: y\r\n\r\ntext\r\n.\r\n")
					c.reply(want)
				}
				if s := nexthop.States(target)[0]; !group && s.Up || group && !strings.Contains(log.String(), "next hop is down") {
					t.Errorf("%s, %q, group %v: %+v\n%s", verb, reply, group, s, log.String())
				}
				if want == "451 4.4.1" && (!strings.Contains(log.String(), "level=ERROR msg=\"next hop failed\"") || !strings.Contains(log.String(), reply)) {
					t.Errorf("%s, %q, group %v: log\n%s", verb, reply, group, log.String())
				}
				target.Close()
			}
		}
	}
}

// TestLoginRefused: only a client that can log in through the gate receives the 530 that asks for
// a login.
func TestLoginRefused(t *testing.T) {
	const reply = "530 5.7.0 Authentication required"
	for auth, want := range map[bool]string{true: reply, false: "451 4.4.1"} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Replies: map[string]string{"MAIL": reply}})
		g := newGate(t, gateOptions{target: newHop(t, nexthop.SMTPConfig{Addr: sink.Addr()}), auth: auth})
		c := dial(t, g.addr)
		c.reply("220")
		c.send("EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n")
		c.reply("250")
		c.reply("250")
		c.reply(want)
	}
}

// TestRefusedRecipientsCounted has a next hop refuse all recipients: those of the gate's own
// refusals do not count.
func TestRefusedRecipientsCounted(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"RCPT": "550 5.1.1 nobody here"}})
	hop := newHop(t, nexthop.SMTPConfig{Addr: sink.Addr()})
	lists := tableJudge{}
	if err := lists.add("envelope spam@example.com reject"); err != nil {
		t.Fatal(err)
	}
	g := newGate(t, gateOptions{target: hop, checker: lists, policy: smtpfilter.Policy{RecipientDomains: []string{"example.net"}}})
	send := func(n int, from, to, want string) {
		t.Helper()
		for range n {
			c := dial(t, g.addr)
			c.reply("220")
			c.send("HELO client.example\r\nMAIL FROM:<" + from + ">\r\nRCPT TO:<" + to + ">\r\n")
			c.reply("250")
			c.reply("250")
			c.reply(want)
		}
	}
	send(20, "spam@example.com", "b@example.net", "550 5.7.1 <spam@example.com>")
	send(20, "a@example.com", "b@example.org", "550 5.7.1 <b@example.org> relay")
	send(49, "a@example.com", "b@example.net", "550 5.1.1 nobody here")
	if s := nexthop.States(hop)[0]; s.Recipients != 49 || s.RecipientsRefused != 49 || s.Warning != "" {
		t.Errorf("%+v", s)
	}
	send(1, "a@example.com", "b@example.net", "550 5.1.1 nobody here")
	if s := nexthop.States(hop)[0]; !s.Up || !strings.Contains(s.Warning, `refused 50 of 50 recipients in the last 10 minutes, the last with "550 5.1.1 nobody here"`) {
		t.Errorf("%+v", s)
	}
}
