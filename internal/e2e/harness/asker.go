package harness

import (
	"strings"
	"testing"
	"time"
)

// An Asker asks a gate for verdicts. It takes a new connection now and then, because a
// gate ends a session with too many refusals.
type Asker struct {
	Addr  string
	c     *Client
	asked int
}

// asksPerConnection is well below the number of refusals that ends a session.
const asksPerConnection = 20

// Verdict returns the reply to RCPT, on a connection that stays open.
func (a *Asker) Verdict(from, to string) (string, error) {
	if a.c != nil && a.asked == asksPerConnection {
		a.Close()
	}
	if a.c == nil {
		c, err := Dial(a.Addr, "")
		if err != nil {
			return "", err
		}
		a.c, a.asked = c, 0
	}
	a.asked++
	return a.c.Verdict(from, to)
}

// Close ends the connection, if there is one.
func (a *Asker) Close() {
	if a.c != nil {
		a.c.Ask("QUIT") // the reply does not matter
		a.c.Close()
		a.c = nil
	}
}

// WaitVerdict asks until the reply to RCPT begins with prefix, and returns it. A change
// of a list takes some time to go live.
func WaitVerdict(t testing.TB, addr, from, prefix string) string {
	t.Helper()
	c := &Asker{Addr: addr}
	defer c.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(WorkTimeout); ; <-tick.C {
		reply, err := c.Verdict(from, "b@example.net")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(reply, prefix) {
			return reply
		}
		if time.Now().After(late) {
			t.Fatalf("%s still gets %q, want %q", from, reply, prefix)
		}
	}
}
