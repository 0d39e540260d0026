package nexthop

import (
	"context"
	"errors"
	"testing"

	"spamgate/smtpfilter/wire"
)

// authTarget is a fakeTarget that supports logins. If asks is set, it sends a challenge
// first.
type authTarget struct {
	fakeTarget
	asks bool
}

type fakeLogin struct{ *authTarget }

func (a *authTarget) Authenticate(_ context.Context, _ Client, _ string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error) {
	a.asked++
	if a.asks {
		if _, err := ask(wire.NewReply(334, "")); err != nil {
			return nil, wire.Reply{}, err
		}
	}
	if a.err != nil || !a.reply.IsZero() {
		return nil, a.reply, a.err
	}
	return fakeLogin{a}, wire.NewReply(235, a.name), nil
}

// TestGroupAuthenticate: another member is tried until one has answered or asked.
func TestGroupAuthenticate(t *testing.T) {
	closing, refused := wire.NewReply(421, "later"), wire.NewReply(535, "no")
	for name, c := range map[string]struct {
		first *authTarget
		up    bool   // what becomes of the first
		want  string // the reply, or the error
	}{
		"taken":                {&authTarget{}, true, "235 first"},
		"refused":              {&authTarget{fakeTarget: fakeTarget{reply: refused}}, true, "535 no"},
		"failed":               {&authTarget{fakeTarget: fakeTarget{err: errStop}}, false, "235 second"},
		"closing":              {&authTarget{fakeTarget: fakeTarget{reply: closing}}, true, "235 second"},
		"not offered":          {&authTarget{fakeTarget: fakeTarget{err: ErrNotOffered}}, true, "235 second"},
		"asked, then taken":    {&authTarget{asks: true}, true, "235 first"},
		"asked, then failed":   {&authTarget{asks: true, fakeTarget: fakeTarget{err: errStop}}, false, errStop.Error()},
		"asked, then closing":  {&authTarget{asks: true, fakeTarget: fakeTarget{reply: closing}}, true, "421 later"},
		"asked, then cut here": {&authTarget{asks: true, fakeTarget: fakeTarget{err: ErrAborted}}, true, ErrAborted.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			c.first.name = "first"
			second := &authTarget{fakeTarget: fakeTarget{name: "second"}}
			g, _ := testGroup(t, GroupConfig{}, &fakeTarget{name: "none"}, c.first, second)
			login, reply, err := g.Authenticate(context.Background(), Client{}, "PLAIN", func(wire.Reply) (string, error) { return "x", nil })
			got := reply.String()
			if err != nil {
				got = err.Error()
			}
			if got != c.want || (login != nil) != (reply.Code == 235) || g.members[1].up() != c.up {
				t.Errorf("%s, login %v, first up %v", got, login, g.members[1].up())
			}
		})
	}
	g, _ := testGroup(t, GroupConfig{}, &fakeTarget{name: "none"})
	if login, reply, err := g.Authenticate(context.Background(), Client{}, "PLAIN", nil); login != nil || !errors.Is(err, ErrNotOffered) {
		t.Errorf("%v, %v", reply, err)
	}
	last, _ := testGroup(t, GroupConfig{}, &authTarget{fakeTarget: fakeTarget{reply: closing}}, &fakeTarget{name: "none"})
	if _, reply, err := last.Authenticate(context.Background(), Client{}, "PLAIN", nil); err != nil || reply.Code != 421 {
		t.Errorf("%v, %v", reply, err)
	}
}

// TestGroupClientBreaksOff: a stranger who gives no answer to a challenge takes no
// member down by it.
func TestGroupClientBreaksOff(t *testing.T) {
	first := &authTarget{asks: true}
	g, _ := testGroup(t, GroupConfig{}, first, &fakeTarget{name: "second"})
	login, _, err := g.Authenticate(context.Background(), Client{}, "PLAIN", func(wire.Reply) (string, error) { return "", errStop })
	if login != nil || !errors.Is(err, errStop) || !g.members[0].up() {
		t.Errorf("login %v, %v, up %v", login, err, g.members[0].up())
	}
}
