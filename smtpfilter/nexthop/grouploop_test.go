package nexthop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// TestGroupHope: a member that is out of service for now decides the reply, wherever the
// others lead to. Only if all of them lead back is it a loop.
func TestGroupHope(t *testing.T) {
	loop := fmt.Errorf("told: %w", ErrLoop)
	down := errors.New("connection refused")
	looping := wire.NewReply(554, "5.4.6 Mail loop")
	later := wire.NewReply(421, "4.3.2 later")
	for name, c := range map[string]struct {
		members []fakeTarget
		err     error
		reply   string
	}{
		"down, loop":               {[]fakeTarget{{err: down}, {err: loop}}, down, ""},
		"loop, down":               {[]fakeTarget{{err: loop}, {err: down}}, down, ""},
		"down, loop by reply":      {[]fakeTarget{{err: down}, {reply: looping}}, down, ""},
		"421, loop":                {[]fakeTarget{{reply: later}, {err: loop}}, nil, "421 4.3.2 later"},
		"421, loop by reply, loop": {[]fakeTarget{{reply: later}, {reply: looping}, {err: loop}}, nil, "421 4.3.2 later"},
		"loop by reply, up":        {[]fakeTarget{{reply: looping}, {name: "up"}}, nil, "250 up"},
		"down, no TLS":             {[]fakeTarget{{err: down}, {err: ErrRequireTLS}}, down, ""},
		"no TLS, down":             {[]fakeTarget{{err: ErrRequireTLS}, {err: down}}, down, ""},
		"loop, no TLS":             {[]fakeTarget{{err: loop}, {err: ErrRequireTLS}}, ErrRequireTLS, ""},
		"loop, loop":               {[]fakeTarget{{err: loop}, {err: loop}}, ErrLoop, ""},
		"loop by reply, loop":      {[]fakeTarget{{reply: looping}, {reply: looping}}, nil, "554 5.4.6 Mail loop"},
		"refused, loop":            {[]fakeTarget{{reply: wire.NewReply(550, "5.1.1 no")}, {err: loop}}, nil, "550 5.1.1 no"},
	} {
		t.Run(name, func(t *testing.T) {
			var members []Target
			for i := range c.members {
				members = append(members, &c.members[i])
			}
			g, _ := testGroup(t, GroupConfig{clock: newTestClock().clock()}, members...)
			tx := g.Begin(Envelope{From: "a@example.com"})
			defer tx.Abort()
			for range 2 { // the second recipient hears the same
				reply, err := tx.Rcpt(context.Background(), "b@example.net", nil)
				if !errors.Is(err, c.err) || reply.String() != c.reply {
					t.Errorf("%q, %v", reply, err)
				}
			}
			if c.reply != "421 4.3.2 later" {
				return
			}
			if m, reply, err := tx.Data(context.Background(), Stuffed); m != nil || err != nil || reply.String() != c.reply {
				t.Errorf("DATA: %q, %v", reply, err)
			}
		})
	}
}

// TestGroupPath: a gate that is a member besides a mail server is on the path while it
// is asked, and once nobody else is up.
func TestGroupPath(t *testing.T) {
	var path []string // while the gate is asked
	var g *Group
	gate := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"XSPAMGATE two three"}, Answer: func(c smtptest.Command) string {
		if c.Verb() == "RCPT" {
			path = Path(g)
		}
		return ""
	}})
	server, mail := newHost(t, smtptest.Config{Replies: map[string]string{"RCPT": "421 4.3.2 later"}})
	hop := newSMTP(t, SMTPConfig{Addr: gate.Addr(), GateID: "one"})
	g, _ = testGroup(t, GroupConfig{clock: newTestClock().clock()}, mail, hop)
	want := []string{"two", "three"}
	send := func(before, after []string) {
		t.Helper()
		if got := Path(g); !slices.Equal(got, before) {
			t.Errorf("path %v before", got)
		}
		if reply, err := deliver(g, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
		if !slices.Equal(path, want) {
			t.Errorf("path %v while the gate is asked", path)
		}
		if got := Path(g); !slices.Equal(got, after) {
			t.Errorf("path %v after", got)
		}
	}
	send(nil, nil)
	server.stop()
	send(nil, want)
}

// TestGateInVain: a gate that finds no mail server has not answered; a mail server that
// says the same has.
func TestGateInVain(t *testing.T) {
	for _, c := range []struct{ extensions, want string }{
		{"XSPAMGATE two", "250 second"},
		{"8BITMIME", "451 4.4.1 not available"},
	} {
		config := smtptest.Config{Extensions: []string{c.extensions}, Replies: map[string]string{"RCPT": "451 4.4.1 not available"}}
		hop := newSMTP(t, SMTPConfig{Addr: smtptest.NewSink(t, config).Addr(), GateID: "one"})
		g, _ := testGroup(t, GroupConfig{clock: newTestClock().clock()}, hop, &fakeTarget{name: "second"})
		tx := g.Begin(Envelope{From: "a@example.com"})
		defer tx.Abort()
		if reply, err := tx.Rcpt(t.Context(), "b@example.net", nil); err != nil || reply.String() != c.want {
			t.Errorf("%s: %q, %v", c.extensions, reply, err)
		}
		if !g.members[0].up() {
			t.Errorf("%s: taken down", c.extensions)
		}
	}
}
