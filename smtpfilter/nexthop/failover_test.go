package nexthop

import (
	"context"
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// TestFailover takes the first of two hosts away and brings it back.
func TestFailover(t *testing.T) {
	clock := newTestClock()
	first, a := newHost(t, smtptest.Config{})
	second, b := newHost(t, smtptest.Config{})
	g, log := testGroup(t, GroupConfig{clock: clock.clock()}, a, b)
	send := func() {
		t.Helper()
		if reply, err := deliver(g, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
	}
	send()
	first.check(1, 1)
	second.check(0, 0)

	first.stop()
	send()
	first.check(2, 1)
	second.check(1, 1)
	send() // the first is left alone
	first.check(2, 1)
	second.check(2, 2)
	clock.advance(time.Second)
	send() // and tried again
	first.check(3, 1)
	second.check(3, 3)

	first.start(smtptest.Config{})
	send()
	first.check(3, 0)
	second.check(4, 4)
	clock.advance(2 * time.Second)
	send()
	send()
	first.check(5, 2)
	second.check(4, 4)

	// With both gone, both are asked for each client, in vain.
	first.stop()
	second.stop()
	for i := range 2 {
		if reply, err := deliver(g, "a@example.com", nil, whole); err == nil || !strings.Contains(err.Error(), "connect") {
			t.Error(reply, err)
		}
		first.check(6+i, 2)
		second.check(5+i, 4)
	}
	// A member that is down gets mail if no other accepts it.
	second.start(smtptest.Config{})
	send()
	second.check(7, 1)
	if down, back := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); down != 3 || back != 2 {
		t.Errorf("log:\n%s", log)
	}
}

// TestProbedBack: a host that was found dead by a probe is brought back by one,
// and no client waits for it in between.
func TestProbedBack(t *testing.T) {
	clock := newTestClock()
	first, a := newProbedHost(t, smtptest.Config{Replies: map[string]string{"GREETING": "554 5.3.2 not here"}})
	second, b := newProbedHost(t, smtptest.Config{})
	g, _ := testGroup(t, GroupConfig{clock: clock.clock()}, a, b)
	clock.advance(0)
	if g.members[0].up() || !g.members[1].up() {
		t.Error("not found out")
	}
	send := func() {
		t.Helper()
		if reply, err := deliver(g, "a@example.com", nil, whole); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
	}
	send()
	clock.advance(time.Second)
	send()
	first.check(2, 0)
	second.check(3, 2)
	first.start(smtptest.Config{})
	clock.advance(2 * time.Second)
	send()
	first.check(4, 1)
	second.check(3, 2)
}

// TestFailoverKinds has the first member fail in each way before it has answered
// a recipient, and refuse in each way: failures go to the second, refusals to
// the client. A second member that fails in its place makes an error, or a 421.
func TestFailoverKinds(t *testing.T) {
	for _, c := range []struct{ command, reply, want string }{
		{"GREETING", "554 5.3.2 not here", "error 554 5.3.2 not here"},
		{"GREETING", "421 4.3.2 later", "error 421 4.3.2 later"},
		{"GREETING", smtptest.Silence, "error timeout"},
		{"GREETING", smtptest.Close, "error EOF"},
		{"EHLO", "550 5.7.1 go away", "error 550 5.7.1 go away"},
		{"EHLO", smtptest.Reset, "error reset"},
		{"MAIL", smtptest.Close, "error EOF"},
		{"MAIL", "354 what", "error unexpected 354"},
		{"MAIL", "421 4.3.2 later", "421 4.3.2 later"},
		{"RCPT", smtptest.Reset, "error reset"},
		{"RCPT", "421 4.3.2 later", "421 4.3.2 later"},
		{"MAIL", "450 4.7.1 greylisted", "final"},
		{"MAIL", "550 5.7.1 refused", "final"},
		{"RCPT", "450 4.2.1 later", "final"},
		{"RCPT", "550 5.1.1 no such user", "final"},
	} {
		t.Run(c.command+" "+c.reply, func(t *testing.T) {
			config := smtptest.Config{Replies: map[string]string{c.command: c.reply}}
			_, bad := newHost(t, config)
			_, good := newHost(t, smtptest.Config{Replies: map[string]string{"RCPT": "250 2.1.5 second"}})
			g, _ := testGroup(t, GroupConfig{clock: newTestClock().clock()}, bad, good)
			rcpt := func(g *Group) (wire.Reply, error) {
				tx := g.Begin(Envelope{From: "a@example.com"})
				defer tx.Abort()
				return tx.Rcpt(context.Background(), "b@example.net", nil)
			}
			reply, err := rcpt(g)
			if c.want == "final" {
				if err != nil || reply.String() != c.reply || !g.members[0].up() {
					t.Errorf("%v, %v", reply, err)
				}
				return
			}
			// A 421 to a client may be meant for that client.
			if up := c.reply == "421 4.3.2 later" && c.command != "GREETING"; err != nil || reply.String() != "250 2.1.5 second" || g.members[0].up() != up {
				t.Errorf("%v, %v", reply, err)
			}
			_, bad = newHost(t, config)
			g, _ = testGroup(t, GroupConfig{clock: newTestClock().clock()}, bad)
			reply, err = rcpt(g)
			if want, isError := strings.CutPrefix(c.want, "error "); isError {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("alone: %v, %v", reply, err)
				}
			} else if err != nil || reply.String() != want {
				t.Errorf("alone: %v, %v", reply, err)
			}
		})
	}
}

// TestRefusedClient: a member that refuses one client, as XCLIENT or the PROXY
// protocol names it, is up for all others. A client could take every member down
// else, with a name in DNS or by connecting too often.
func TestRefusedClient(t *testing.T) {
	for name, c := range map[string]struct {
		proxy                 int
		command, reply, error string
	}{
		"XCLIENT":        {0, "XCLIENT", "501 5.5.4 Bad NAME syntax", "XCLIENT refused: 501 5.5.4 Bad NAME syntax"},
		"PROXY greeting": {1, "GREETING", "421 4.7.0 too many connections", "in the client's name: greeting refused: 421 4.7.0 too many connections"},
		"PROXY EHLO":     {1, "EHLO", "550 5.7.1 go away", "in the client's name: EHLO refused: 550 5.7.1 go away"},
	} {
		t.Run(name, func(t *testing.T) {
			var members []Target
			for range 2 {
				server := smtptest.NewScript(t, smtptest.Parse("", refusingScript(c.proxy, c.command, c.reply)).Steps)
				members = append(members, newSMTP(t, SMTPConfig{Addr: server.Addr(), Proxy: c.proxy, Identity: IdentityXCLIENT}))
			}
			g, log := testGroup(t, GroupConfig{clock: newTestClock().clock()}, members...)
			tx := g.Begin(Envelope{Client: testClient, From: "a@example.com"})
			defer tx.Abort()
			if _, err := tx.Rcpt(context.Background(), "b@example.net", nil); err == nil || !strings.HasSuffix(err.Error(), c.error) {
				t.Error(err)
			}
			if !g.members[0].up() || !g.members[1].up() {
				t.Errorf("taken down:\n%s", log)
			}
		})
	}
}

// refusingScript is the dialogue of a server that refuses at a command.
func refusingScript(proxy int, command, reply string) string {
	script := ""
	if proxy != 0 {
		script = "C PROXY TCP4 *\n"
	}
	for _, step := range [][2]string{{"GREETING", "220 next.example"}, {"EHLO", "250-next.example\nS 250 XCLIENT ADDR"}, {"XCLIENT", ""}} {
		if step[0] != "GREETING" {
			script += "C " + step[0] + " *\n"
		}
		if step[0] == command {
			return script + "S " + reply + "\n"
		}
		script += "S " + step[1] + "\n"
	}
	return script
}
