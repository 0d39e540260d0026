package doors

import (
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestExamplePolicy tries what "config init --for postfix-policy" writes.
func TestExamplePolicy(t *testing.T) {
	t.Parallel()
	p, g := startAsking(t, "postfix-policy")
	c := harness.MustDial(t, p.Addr)
	wantRefusal(t, c, "spammer@example.com", "Recipient address rejected: <spammer@example.com> refused: list blocked-file (reported three times); id ")
	wantRefusal(t, c, "x@mail.spam.example", "refused: list blocked-file (")
	wantSent(t, c, "a@example.com", harness.Mailbox)
	if got := sendHeader(t, c, "spammer@example.com"); !strings.HasPrefix(got, "250 ") {
		t.Errorf("a listed sender in the header, which a policy service does not see, is answered with %q", got)
	}
	g.Signal(9)
	g.Wait()
	wantSent(t, c, "spammer@example.com", harness.Mailbox) // it fails open
}

// TestExampleMilter tries what "config init --for postfix-milter" writes.
func TestExampleMilter(t *testing.T) {
	t.Parallel()
	p, g := startAsking(t, "postfix-milter")
	c := harness.MustDial(t, p.Addr)
	wantRefusal(t, c, "spammer@example.com", "550 5.7.1 <spammer@example.com> refused: list blocked-file (reported three times); id ")
	wantSent(t, c, "a@example.com", harness.Mailbox)
	const refused = "550 5.7.1 <spammer@example.com> refused: list blocked-file (reported three times); id "
	if got := sendHeader(t, c, "spammer@example.com"); !strings.HasPrefix(got, refused) {
		t.Errorf("a listed sender in the header is answered with %q", got)
	}
	g.Signal(9)
	g.Wait()
	wantSent(t, harness.MustDial(t, p.Addr), "spammer@example.com", harness.Mailbox)
}

// startAsking starts a Postfix with the lines for main.cf, and the gate that it asks.
func startAsking(t *testing.T, server string) (*harness.Postfix, *harness.Gate) {
	t.Helper()
	e := harness.OpenDoorExample(t, server)
	p := harness.StartPostfix(t, harness.Nowhere, strings.Split(e.Lines(0), "\n")...)
	e.CheckServer("", filepath.Join(p.Dir, "conf"), "")
	return p, e.StartDoor()
}

// wantRefusal wants the first recipient of a sender to be refused, and postmaster to be
// reachable.
func wantRefusal(t *testing.T, c *harness.Client, from, why string) {
	t.Helper()
	c.Want(t, "MAIL FROM:<"+from+">", "250")
	if reply, err := c.Ask("RCPT TO:<" + harness.Mailbox + ">"); err != nil || !strings.HasPrefix(reply, "550 5.7.1 ") || !strings.Contains(reply, why) {
		t.Errorf("<%s> is answered with %q, %v; want %q", from, reply, err, why)
	}
	// Postfix knows no mailbox of that name, and asks the gate before it looks.
	if reply, err := c.Ask("RCPT TO:<postmaster@example.org>"); err != nil || strings.Contains(reply, "refused") {
		t.Errorf("from <%s>, postmaster is answered with %q, %v", from, reply, err)
	}
	c.Want(t, "RSET", "250")
}

func wantSent(t *testing.T, c *harness.Client, from, to string) {
	t.Helper()
	if reply := c.MustSend(t, from, to, harness.SmallMessage("a@example.com", "example")); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("mail from <%s> to <%s> is answered with %q", from, to, reply)
	}
}

// sendHeader sends a message whose header has a sender, and returns the reply.
func sendHeader(t *testing.T, c *harness.Client, from string) string {
	t.Helper()
	return c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage(from, "header"))
}
