package browser

import (
	"context"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestLetIn is what a help desk does: a message was refused; it is found by the id of the
// refusal, the sender is let in for an hour, the same message passes within two seconds, and
// once the change is undone it is refused again.
func TestLetIn(t *testing.T) {
	t.Parallel()
	letIn(t, func(*tab) {})
}

// TestLetInWithoutScripts is the same without JavaScript.
func TestLetInWithoutScripts(t *testing.T) {
	t.Parallel()
	letIn(t, (*tab).withoutScripts)
}

const (
	bob = "bob@spam.example"
	ann = "ann@example.net"
)

func letIn(t *testing.T, prepare func(*tab)) {
	s := startSite(t, harness.Setup{})
	id := s.refused(t, bob, ann, "blocked-file", "unsolicited mail")
	s.api.WaitRow(t, id)

	b := s.login(t, startBrowser(t), "helpdesk")
	prepare(b)
	b.letIn(id)
	passes(t, s, bob, ann)
	b.shows(bob)

	b.open("/changes")
	b.shows(bob, "helpdesk", "a customer of ours")
	b.click("Undo…")
	b.click("Undo: remove " + bob)
	s.refused(t, bob, ann, "blocked-file", "unsolicited mail")
	b.open("/changes")
	b.shows("undone")
	b.clean("the flow")
}

// letIn finds a message by its id, and lets its sender in for an hour.
func (b *tab) letIn(id string) {
	b.t.Helper()
	b.open("/mail")
	b.fill("Address", id)
	b.click("Search")
	b.shows(id, bob, "blocked-file", "unsolicited mail")
	b.click("Let in")
	b.choose("an hour")
	b.click("Show what it changes")
	b.shows("It helps the message")
	b.fill("Reason", "a customer of ours")
	b.click("Let in " + bob + " for " + ann + " for an hour")
}

// passes fails the test unless mail passes within two seconds.
func passes(t testing.TB, s *site, from, to string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for {
		reply, err := harness.MustDial(t, s.Addr).Verdict(from, to)
		if err != nil {
			t.Fatal(err)
		}
		if reply[0] == '2' {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("mail is refused two seconds later: %s", reply)
		}
	}
}
