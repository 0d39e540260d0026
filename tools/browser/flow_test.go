package browser

import (
	"context"
	"os/exec"
	"strings"
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
	reply := s.swaks(t, bob, ann)
	id := harness.WantRefusal(t, reply, bob, "blocked-file", "unsolicited mail")
	s.api.WaitRow(t, id)

	b := s.login(t, startBrowser(t), "helpdesk")
	prepare(b)
	b.letIn(id)
	passes(t, s, bob, ann)
	if reply := s.swaks(t, bob, ann); reply[0] != '2' {
		t.Errorf("swaks hears %q", reply)
	}
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

// swaks sends an envelope with swaks, and returns the reply to RCPT.
func (s *site) swaks(t testing.TB, from, to string) string {
	t.Helper()
	cmd := exec.Command(harness.Program(t, "swaks", "swaks"), "--server", s.Addr, "--from", from, "--to", to, "--quit-after", "RCPT")
	out, _, _ := harness.Run(t, cmd)
	_, rest, _ := strings.Cut(out, "RCPT TO:")
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "<-") || strings.HasPrefix(line, "<*") { // "<-  250 ..." or "<** 550 ..."
			return strings.TrimSpace(strings.TrimLeft(line, "<-~* "))
		}
	}
	t.Fatalf("swaks printed\n%s", out)
	return ""
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
	b.shows("With this entry, the message that you came from passes.")
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

// TestLiveView has the page of the mail show what comes in, until Pause.
func TestLiveView(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	b := s.login(t, startBrowser(t), "viewer")
	b.open("/mail")
	b.choose("Live view")
	first := s.refused(t, bob, ann, "blocked-file", "unsolicited mail")
	harness.WaitFor(t, "the row in the page", func() bool { return strings.Contains(b.text(), first) })
	b.choose("Pause")
	second := s.refused(t, "carl@spam.example", ann, "blocked-file", "unsolicited mail")
	s.api.WaitRow(t, second)
	if strings.Contains(b.text(), second) {
		t.Error("the live view goes on after Pause")
	}
	b.clean("the live view")
}
