package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chattyPostfix is a Postfix that logs every command that it is sent, and has a
// mailbox with an address in Unicode.
func chattyPostfix(t testing.TB) *postfix {
	t.Helper()
	return startPostfix(t, everywhere,
		"debug_peer_list = "+everywhere,
		"debug_peer_level = 1",
		"smtputf8_enable = yes",
		"virtual_mailbox_domains = example.org example.com",
		"virtual_mailbox_maps = inline:{ you@example.org=you/ grün@example.org=grün/ a@example.com=sender/ }",
	)
}

// commands returns those that Postfix has logged and that begin with a verb, but for
// the MAIL of the gate's probes.
func (p *postfix) commands(verb string) []string {
	var found []string
	for _, line := range p.logLines("]: " + verb) {
		if _, command, ok := strings.Cut(line, ": < "); ok {
			_, command, _ = strings.Cut(command, "]: ")
			if command = strings.TrimSuffix(command, "\n"); command != "MAIL FROM:<>" {
				found = append(found, command)
			}
		}
	}
	return found
}

// mailIn waits for the one message in the mailbox in a directory.
func (p *postfix) mailIn(mailbox string) string {
	p.t.Helper()
	dir := filepath.Join(p.dir, "mail", mailbox, "new")
	p.poll("mail in "+mailbox, func() bool { return len(readAll(p.t, dir)) > 0 })
	all := readAll(p.t, dir)
	if len(all) != 1 {
		p.t.Fatalf("%d messages in %s", len(all), mailbox)
	}
	return all[0]
}

// waitOffered waits until a gate offers a keyword. It opens after two seconds at most,
// whether it has heard by then what its next hop offers or not.
func waitOffered(t testing.TB, addr, keyword string) {
	t.Helper()
	pollFor(t, keyword+" to be offered", func() bool {
		c := mustDial(t, addr)
		defer c.Close()
		return strings.Contains(c.want(t, "EHLO client.example", "250"), keyword)
	})
}

// TestExtensions wants every keyword that both sides can do to be offered.
func TestExtensions(t *testing.T) {
	t.Parallel()
	p := chattyPostfix(t)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr})
	waitOffered(t, g.addr, "CHUNKING")
	offered := strings.Split(mustDial(t, g.addr).want(t, "EHLO client.example", "250"), "\n")
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

// TestDSN asks Postfix for a delivery report (RFC 3461), which then tells what of
// the parameters has arrived.
func TestDSN(t *testing.T) {
	t.Parallel()
	p := chattyPostfix(t)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr})
	waitOffered(t, g.addr, "DSN")
	c := mustDial(t, g.addr)
	const mail = "MAIL FROM:<a@example.com> RET=HDRS ENVID=QQ+2B314159 BODY=8BITMIME SIZE=1000"
	const rcpt = "RCPT TO:<you@example.org> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;former+2Bname@example.org"
	c.want(t, mail, "250")
	c.want(t, rcpt, "250")
	c.want(t, "DATA", "354")
	fmt.Fprintf(c, "%s.\r\n", letter("a@example.com", "dsn"))
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "250") {
		t.Fatalf("the message was answered with %q, %v", reply, err)
	}
	wantCommand(t, p, "MAIL", mail)
	wantCommand(t, p, "RCPT", rcpt)
	report := p.mailIn("sender")
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

// wantCommand wants Postfix to have been sent one command with a verb.
func wantCommand(t testing.TB, p *postfix, verb, want string) {
	t.Helper()
	p.logged()
	if got := p.commands(verb); len(got) != 1 || got[0] != want {
		t.Errorf("Postfix was told %q, want %q", got, want)
	}
}

// TestSMTPUTF8 sends addresses and a header in Unicode (RFC 6531).
func TestSMTPUTF8(t *testing.T) {
	t.Parallel()
	p := chattyPostfix(t)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, files: map[string]string{"blocked.txt": "böse@example.com\n"}})
	waitOffered(t, g.addr, "SMTPUTF8")
	c := mustDial(t, g.addr)
	c.want(t, "MAIL FROM:<böse@example.com> SMTPUTF8", "250")
	c.want(t, "RCPT TO:<grün@example.org>", "550 5.7.1")
	c.want(t, "RSET", "250")
	c.want(t, "MAIL FROM:<jürgen@example.com>", "553")
	const mail, rcpt = "MAIL FROM:<jürgen@bücher.example> SMTPUTF8", "RCPT TO:<grün@example.org>"
	c.want(t, mail, "250")
	c.want(t, rcpt, "250")
	c.want(t, "DATA", "354")
	message := "From: Jürgen <jürgen@bücher.example>\r\nTo: <grün@example.org>\r\nSubject: Grüße\r\n\r\nSchöne Grüße\r\n"
	fmt.Fprintf(c, "%s.\r\n", message)
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "250") {
		t.Fatalf("the message was answered with %q, %v", reply, err)
	}
	wantCommand(t, p, "MAIL", mail)
	wantCommand(t, p, "RCPT", rcpt)
	got := p.mailIn("grün")
	if !strings.HasSuffix(got, strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("the mail arrived changed:\n%s", got)
	}
	if !strings.Contains(got, "with UTF8SMTP id ") {
		t.Errorf("neither trace field has UTF8SMTP (RFC 6531, section 4.3):\n%s", got)
	}
}

// TestChunks sends messages by BDAT (RFC 3030): in one chunk, in several, with an
// empty last one, and all of it in one packet. To Postfix they go as chunks.
func TestChunks(t *testing.T) {
	t.Parallel()
	p := chattyPostfix(t)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr})
	waitOffered(t, g.addr, "CHUNKING")
	sent := map[string]string{} // by subject
	for i, sizes := range [][]int{{-1}, {1, 10, -1}, {100, 50, 1, 1, -1}, {1000, -1}} {
		for _, pipelined := range []bool{false, true} {
			subject := fmt.Sprintf("chunks-%d-%t", i, pipelined)
			sent[subject] = letter("a@example.com", subject) + ".\r\n..dots\r\n8-bit \xe4\xff\r\nRSET\r\n"
			sendChunks(t, g.addr, sent[subject], sizes, pipelined)
		}
	}
	g.stop()
	messages := settledPostfix(t, p)
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
	if n := len(p.commands("DATA")); n != 0 {
		t.Errorf("Postfix was told DATA %d times", n)
	}
	for _, mail := range p.commands("MAIL") {
		if mail != "MAIL FROM:<a@example.com> BODY=8BITMIME" {
			t.Errorf("Postfix was told %q", mail)
		}
	}
}

// sendChunks sends a message in chunks; -1 is the size of all that is left, and
// the last one.
func sendChunks(t testing.TB, addr, message string, sizes []int, pipelined bool) {
	t.Helper()
	c := mustDial(t, addr)
	steps := []string{"MAIL FROM:<a@example.com> BODY=8BITMIME\r\n", "RCPT TO:<" + mailbox + ">\r\n"}
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
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "250") {
			t.Fatalf("%q was answered with %q, %v", step, reply, err)
		}
	}
	c.want(t, "QUIT", "221")
}

// TestEightBit sends 8-bit text with and without BODY=8BITMIME: it arrives as it
// is, and so does what the client said of it.
func TestEightBit(t *testing.T) {
	t.Parallel()
	p := chattyPostfix(t)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr})
	c := mustDial(t, g.addr)
	mails := []string{"MAIL FROM:<a@example.com> BODY=8BITMIME", "MAIL FROM:<a@example.com> BODY=7BIT", "MAIL FROM:<a@example.com>"}
	message := letter("a@example.com", "eight") + "\x80\xe4\xf6\xfc\xff\r\n"
	for _, mail := range mails {
		c.want(t, mail, "250")
		c.want(t, "RCPT TO:<"+mailbox+">", "250")
		c.want(t, "DATA", "354")
		fmt.Fprintf(c, "%s.\r\n", message)
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "250") {
			t.Fatalf("%s: the message was answered with %q, %v", mail, reply, err)
		}
	}
	g.stop()
	for _, m := range settledPostfix(t, p) {
		if !strings.HasSuffix(m, strings.ReplaceAll(message, "\r\n", "\n")) {
			t.Errorf("the mail arrived changed:\n%q", m)
		}
	}
	if got := p.commands("MAIL"); strings.Join(got, "\n") != strings.Join(mails, "\n") {
		t.Errorf("Postfix was told %q, want %q", got, mails)
	}
	if entries, err := os.ReadDir(filepath.Join(p.dir, "mail/you/new")); err != nil || len(entries) != len(mails) {
		t.Errorf("%d messages came, want %d: %v", len(entries), len(mails), err)
	}
}
