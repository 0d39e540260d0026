package nexthop

import (
	"context"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// unprobedLogin is a target without Probe that supports logins.
type unprobedLogin struct {
	Target
	Authenticator
}

// TestDownServesForUp fails the member that is up: one that was down and works again
// gets mail and logins at once, before the end of its back-off.
func TestDownServesForUp(t *testing.T) {
	for _, balance := range []Balance{Priority, RoundRobin} {
		clock := newTestClock()
		auth := smtptest.Config{Extensions: []string{"AUTH PLAIN"}}
		first, a := newProbedHost(t, auth)
		second, b := newProbedHost(t, auth)
		g, log := testGroup(t, GroupConfig{Balance: balance, clock: clock.clock()}, unprobedLogin{a, a}, unprobedLogin{b, b})
		send := func() {
			t.Helper()
			if reply, err := deliver(g, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
				t.Fatalf("%v, %v\n%s", reply, err, log)
			}
		}
		first.stop()
		send()
		send() // whoever's turn it was
		if g.members[0].up() || !g.members[1].up() {
			t.Fatal("the first is up, or the second is not")
		}
		second.stop()
		first.start(auth)
		send()
		if !g.members[0].up() || g.members[1].up() {
			t.Error("the first is down, or the second is not")
		}

		first.stop()
		second.start(auth)
		login, reply, err := g.Authenticate(context.Background(), testClient, "PLAIN eA==", func(wire.Reply) (string, error) { return "", errStop })
		if err != nil || reply.Code != 235 {
			t.Fatalf("%v, %v\n%s", reply, err, log)
		}
		login.Close()
	}
}
