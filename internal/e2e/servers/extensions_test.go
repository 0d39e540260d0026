package servers

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// verbosePostfix starts a Postfix that logs every command and has a mailbox with a
// Unicode address.
func verbosePostfix(t testing.TB) *harness.Postfix {
	t.Helper()
	return harness.StartPostfix(t, harness.Everywhere,
		"debug_peer_list = "+harness.Everywhere,
		"debug_peer_level = 1",
		"smtputf8_enable = yes",
		"virtual_mailbox_domains = example.org example.com",
		"virtual_mailbox_maps = inline:{ you@example.org=you/ grün@example.org=grün/ a@example.com=sender/ }",
	)
}

// postfixCommands returns the commands in Postfix's log that begin with a verb, without
// the MAIL of the gate's probes.
func postfixCommands(p *harness.Postfix, verb string) []string {
	var found []string
	for _, line := range p.LogLines("]: " + verb) {
		if _, command, ok := strings.Cut(line, ": < "); ok {
			_, command, _ = strings.Cut(command, "]: ")
			if command = strings.TrimSuffix(command, "\n"); command != "MAIL FROM:<>" {
				found = append(found, command)
			}
		}
	}
	return found
}

// TestExtensions checks that a gate offers every keyword that it and the next hop
// support.
func TestExtensions(t *testing.T) {
	t.Parallel()
	p := verbosePostfix(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr})
	harness.WaitOffered(t, g.Addr, "CHUNKING")
	offered := strings.Split(harness.MustDial(t, g.Addr).Want(t, "EHLO client.example", "250"), "\n")
	got := map[string]bool{}
	for _, line := range offered[1:] {
		keyword, _, _ := strings.Cut(line[len("250-"):], " ")
		got[keyword] = true
	}
	for _, keyword := range []string{"PIPELINING", "SIZE", "ENHANCEDSTATUSCODES", "8BITMIME", "DSN", "SMTPUTF8", "CHUNKING"} {
		if !got[keyword] {
			t.Errorf("%s is not offered: %q", keyword, offered)
		}
	}
	for _, keyword := range []string{"STARTTLS", "AUTH", "BINARYMIME", "ETRN", "VRFY", "XCLIENT", "XFORWARD"} {
		if got[keyword] {
			t.Errorf("%s is offered: %q", keyword, offered)
		}
	}
}

// TestDSN asks Postfix for a delivery report (RFC 3461), which shows the parameters that
// have arrived.
func TestDSN(t *testing.T) {
	t.Parallel()
	p := verbosePostfix(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr})
	harness.WaitOffered(t, g.Addr, "DSN")
	c := harness.MustDial(t, g.Addr)
	const mail = "MAIL FROM:<a@example.com> RET=HDRS ENVID=QQ+2B314159 BODY=8BITMIME SIZE=1000"
	const rcpt = "RCPT TO:<you@example.org> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;former+2Bname@example.org"
	c.Want(t, mail, "250")
	c.Want(t, rcpt, "250")
	c.Want(t, "DATA", "354")
	fmt.Fprintf(c, "%s.\r\n", harness.SmallMessage("a@example.com", "dsn"))
	if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "250") {
		t.Fatalf("the message was answered with %q, %v", reply, err)
	}
	wantCommand(t, p, "MAIL", mail)
	wantCommand(t, p, "RCPT", rcpt)
	report := p.OneMail("sender")
	for _, want := range []string{
		"Original-Envelope-Id: QQ+314159\n",
		"Original-Recipient: rfc822;former+name@example.org\n",
		"Action: delivered\n",
		"Content-Type: text/rfc822-headers\n",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// wantCommand checks that Postfix got one command with that verb.
func wantCommand(t testing.TB, p *harness.Postfix, verb, want string) {
	t.Helper()
	p.Logged()
	if got := postfixCommands(p, verb); len(got) != 1 || got[0] != want {
		t.Errorf("Postfix was told %q, want %q", got, want)
	}
}

// TestSMTPUTF8 sends addresses and a header in Unicode (RFC 6531).
func TestSMTPUTF8(t *testing.T) {
	t.Parallel()
	p := verbosePostfix(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Files: map[string]string{"blocked.txt": "böse@example.com\n"}})
	harness.WaitOffered(t, g.Addr, "SMTPUTF8")
	c := harness.MustDial(t, g.Addr)
	c.Want(t, "MAIL FROM:<böse@example.com> SMTPUTF8", "250")
	c.Want(t, "RCPT TO:<grün@example.org>", "550 5.7.1")
	c.Want(t, "RSET", "250")
	c.Want(t, "MAIL FROM:<jürgen@example.com>", "553")
	const mail, rcpt = "MAIL FROM:<jürgen@bücher.example> SMTPUTF8", "RCPT TO:<grün@example.org>"
	c.Want(t, mail, "250")
	c.Want(t, rcpt, "250")
	c.Want(t, "DATA", "354")
	message := "From: Jürgen <jürgen@bücher.example>\r\nTo: <grün@example.org>\r\nSubject: Grüße\r\n\r\nSchöne Grüße\r\n"
	fmt.Fprintf(c, "%s.\r\n", message)
	if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "250") {
		t.Fatalf("the message was answered with %q, %v", reply, err)
	}
	wantCommand(t, p, "MAIL", mail)
	wantCommand(t, p, "RCPT", rcpt)
	got := p.OneMail("grün")
	if !strings.HasSuffix(got, strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("the mail arrived changed:\n%s", got)
	}
	if !strings.Contains(got, "with UTF8SMTP id ") {
		t.Errorf("neither trace field has UTF8SMTP (RFC 6531, section 4.3):\n%s", got)
	}
}

// TestChunks sends messages by BDAT (RFC 3030): in one chunk, in several, with an empty
// last one, and all in one packet. Postfix gets them in chunks, too.
func TestChunks(t *testing.T) {
	t.Parallel()
	p := verbosePostfix(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr})
	harness.WaitOffered(t, g.Addr, "CHUNKING")
	sent := map[string]string{} // by subject
	for i, sizes := range [][]int{{-1}, {1, 10, -1}, {100, 50, 1, 1, -1}, {1000, -1}} {
		for _, pipelined := range []bool{false, true} {
			subject := fmt.Sprintf("chunks-%d-%t", i, pipelined)
			sent[subject] = harness.SmallMessage("a@example.com", subject) + ".\r\n..dots\r\n8-bit \xe4\xff\r\nRSET\r\n"
			sendChunks(t, g.Addr, sent[subject], sizes, pipelined)
		}
	}
	g.Stop()
	messages := harness.SettledPostfix(t, p)
	for subject, message := range sent {
		copies := 0
		for _, m := range messages {
			if strings.HasSuffix(m, "\n"+strings.ReplaceAll(message, "\r\n", "\n")) {
				copies++
			}
		}
		if copies != 1 {
			t.Errorf("%s: %d copies that are whole, want 1", subject, copies)
		}
	}
	if len(messages) != len(sent) {
		t.Errorf("%d messages came, want %d", len(messages), len(sent))
	}
	if n := len(postfixCommands(p, "DATA")); n != 0 {
		t.Errorf("Postfix was told DATA %d times", n)
	}
	for _, mail := range postfixCommands(p, "MAIL") {
		if mail != "MAIL FROM:<a@example.com> BODY=8BITMIME" {
			t.Errorf("Postfix was told %q", mail)
		}
	}
}

// sendChunks sends a message in chunks. A size of -1 is all that is left, as the last
// chunk.
func sendChunks(t testing.TB, addr, message string, sizes []int, pipelined bool) {
	t.Helper()
	c := harness.MustDial(t, addr)
	steps := []string{"MAIL FROM:<a@example.com> BODY=8BITMIME\r\n", "RCPT TO:<" + harness.Mailbox + ">\r\n"}
	for _, n := range sizes {
		last := ""
		if n < 0 {
			n, last = len(message), " LAST"
		}
		n = min(n, len(message))
		command := fmt.Sprintf("BDAT %d%s\r\n", n, last)
		steps = append(steps, command+message[:n])
		message = message[n:]
	}
	if pipelined {
		io.WriteString(c, strings.Join(steps, ""))
	}
	for _, step := range steps {
		if !pipelined {
			io.WriteString(c, step)
		}
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "250") {
			t.Fatalf("%q was answered with %q, %v", step, reply, err)
		}
	}
	c.Want(t, "QUIT", "221")
}

// TestEightBit sends 8-bit text with and without BODY=8BITMIME. The text and the
// parameter arrive unchanged.
func TestEightBit(t *testing.T) {
	t.Parallel()
	p := verbosePostfix(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr})
	c := harness.MustDial(t, g.Addr)
	mails := []string{"MAIL FROM:<a@example.com> BODY=8BITMIME", "MAIL FROM:<a@example.com> BODY=7BIT", "MAIL FROM:<a@example.com>"}
	message := harness.SmallMessage("a@example.com", "eight") + "\x80\xe4\xf6\xfc\xff\r\n"
	for _, mail := range mails {
		c.Want(t, mail, "250")
		c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "250")
		c.Want(t, "DATA", "354")
		fmt.Fprintf(c, "%s.\r\n", message)
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "250") {
			t.Fatalf("%s: the message was answered with %q, %v", mail, reply, err)
		}
	}
	g.Stop()
	for _, m := range harness.SettledPostfix(t, p) {
		if !strings.HasSuffix(m, strings.ReplaceAll(message, "\r\n", "\n")) {
			t.Errorf("the mail arrived changed:\n%q", m)
		}
	}
	if got := postfixCommands(p, "MAIL"); strings.Join(got, "\n") != strings.Join(mails, "\n") {
		t.Errorf("Postfix was told %q, want %q", got, mails)
	}
	if entries, err := os.ReadDir(filepath.Join(p.Dir, "mail/you/new")); err != nil || len(entries) != len(mails) {
		t.Errorf("%d messages came, want %d: %v", len(entries), len(mails), err)
	}
}
