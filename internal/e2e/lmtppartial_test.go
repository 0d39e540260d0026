package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dovecotQuota has Dovecot take mail by LMTP, and look after quotas. It does so once
// it has the message.
const dovecotQuota = dovecotLMTP + `
protocol lmtp {
  mail_plugins = quota
}
plugin {
  quota = maildir:User quota
  quota_rule = *:storage=100M
}
FULL`

// quotaUsers are the users u1 to u48, and full, whose mailbox has room for a number of
// kilobytes.
func quotaUsers(kilobytes int) string {
	var users strings.Builder
	user := func(name, more string) {
		fmt.Fprintf(&users, "%s@example.org:{plain}secret:%d:%d::/var/mail/%s::%s\n", name, vmail, vmail, name, more)
	}
	for i := range 48 {
		user(fmt.Sprintf("u%d", i+1), "")
	}
	user("full", fmt.Sprintf("userdb_quota_rule=*:storage=%dK", kilobytes))
	return users.String()
}

// partialScene is a Postfix in front, with its own defaults, a gate, and a Dovecot
// behind with 48 mailboxes that have room and one that has not.
type partialScene struct {
	t       *testing.T
	postfix *postfix
	gate    *gate
	dovecot dovecot
	queueID string
}

func newPartialScene(t *testing.T, whenFull string) *partialScene {
	t.Helper()
	d := startDovecot(t, strings.Replace(dovecotQuota, "FULL", whenFull, 1), "lmtp")
	d.write("etc/dovecot/users", quotaUsers(1))
	listen := freeAddr(t)
	g := startGate(t, setup{nextHop: "lmtp+unix:" + d.socket, listen: listen})
	host, port, _ := net.SplitHostPort(listen)
	// postqueue -f does not work without pickup.
	p := startPostfixService(t, postfixSmtpd+"\npickup unix n - n 60 1 pickup", everywhere,
		"relayhost = ["+host+"]:"+port,
		"virtual_mailbox_domains = sender.example",
		"virtual_mailbox_maps = inline:{ ann@sender.example=you/ }")
	return &partialScene{t: t, postfix: p, gate: g, dovecot: d}
}

// send gives Postfix a message to the 48, to full and to nobody.
func (s *partialScene) send() {
	s.t.Helper()
	c := mustDial(s.t, s.postfix.addr)
	c.want(s.t, "MAIL FROM:<ann@sender.example>", "250")
	c.want(s.t, "RCPT TO:<full@example.org>", "250")
	for i := range 48 {
		c.want(s.t, fmt.Sprintf("RCPT TO:<u%d@example.org>", i+1), "250")
	}
	c.want(s.t, "RCPT TO:<nobody@example.org>", "250")
	c.want(s.t, "DATA", "354")
	message := letter("ann@sender.example", "many") + strings.Repeat("A line of the message.\r\n", 200)
	c.Write(stuff([]byte(message)))
	reply, err := c.reply()
	id, ok := strings.CutPrefix(reply, "250 2.0.0 Ok: queued as ")
	if err != nil || !ok {
		s.t.Fatalf("Postfix said %q, %v", reply, err)
	}
	s.queueID = id
}

// retry has Postfix try again what is in its queue, once it is there.
func (s *partialScene) retry() {
	s.t.Helper()
	s.postfix.poll("the message to be deferred", func() bool {
		files, _ := filepath.Glob(filepath.Join(s.postfix.dir, "queue/deferred/*", s.queueID))
		return len(files) > 0
	})
	s.flush()
}

// flush has Postfix try what is in its queue by now.
func (s *partialScene) flush() {
	s.t.Helper()
	cmd := exec.Command("postqueue", "-c", filepath.Join(s.postfix.dir, "conf"), "-f")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("postqueue: %v\n%s", err, out)
	}
}

// restart kills the gate, and starts another one in its place.
func (s *partialScene) restart() {
	s.t.Helper()
	s.gate.kill()
	s.gate.wait()
	s.gate = launch(s.t, s.gate.dir, exec.Command(binary(s.t), "serve"))
	s.gate.addr = s.gate.waitListening()
}

// wantStatus waits until Postfix has so many recipients with a status, in the words
// of the text.
func (s *partialScene) wantStatus(n int, status, text string) {
	s.t.Helper()
	s.postfix.waitLog(n, s.queueID+": to=<", "status="+status, text)
}

// wantMailboxes wants one message in each of the 48 mailboxes, and so many for full.
func (s *partialScene) wantMailboxes(full int) {
	s.t.Helper()
	s.dovecot.mail("u48", 1)
	count := func(user string) int {
		files, err := filepath.Glob(filepath.Join(s.dovecot.root, "var/mail", user, "new", "*"))
		if err != nil {
			s.t.Fatal(err)
		}
		return len(files)
	}
	for i := range 48 {
		if n := count(fmt.Sprintf("u%d", i+1)); n != 1 {
			s.t.Errorf("u%d has the message %d times", i+1, n)
		}
	}
	if n := count("full"); n != full {
		s.t.Errorf("full has the message %d times, want %d", n, full)
	}
}

// wantEnd waits until Postfix is done with the message, and wants the sender to have
// heard of the recipients in these words, and of no other.
func (s *partialScene) wantEnd(words ...string) {
	s.t.Helper()
	s.postfix.waitLog(1, s.queueID+": removed")
	var files []string
	s.postfix.poll("bounces", func() bool {
		files, _ = filepath.Glob(filepath.Join(s.postfix.dir, "mail/you/new/*"))
		return len(files) >= len(words)
	})
	heard := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		heard += string(text)
	}
	for _, w := range words {
		if !strings.Contains(strings.Join(strings.Fields(heard), " "), w) {
			s.t.Errorf("the sender has not heard %q, but\n%s", w, heard)
		}
	}
	if n := strings.Count(heard, "Final-Recipient:"); n != len(words) {
		s.t.Errorf("the sender has heard of %d recipients, want %d", n, len(words))
	}
}

const (
	unknownUser = "<nobody@example.org> User doesn't exist: nobody@example.org"
	overQuota   = "<full@example.org> Quota exceeded (mailbox for user is full)"
)

// TestLMTPPartial sends a message to 50 recipients through a Postfix to Dovecot: 48
// have it at the first delivery, and each of them once; the sender hears of the two
// others what Dovecot has said. It takes two retries. The gate may be killed before
// each.
func TestLMTPPartial(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			t.Parallel()
			s := newPartialScene(t, "")
			s.send()
			s.wantStatus(1, "bounced", unknownUser)
			s.wantStatus(49, "deferred", "451 4.3.0 Delivered to 48 of 49 recipients")
			s.wantMailboxes(0)
			for range 2 {
				if killed {
					s.restart()
				}
				s.retry()
				// Who has it goes first, whoever Postfix names first.
				s.wantStatus(48, "sent", "250 2.0.0 Ok: delivered before")
				s.wantStatus(1, "deferred", "452 4.5.3 ")
			}
			s.wantStatus(1, "bounced", "552 5.2.2 "+overQuota)
			s.wantMailboxes(0)
			s.wantEnd("550 5.1.1 "+unknownUser, "552 5.2.2 "+overQuota)
			if n := len(s.postfix.logLines(s.queueID, "status=deferred")); n != 50 {
				t.Errorf("%d recipients were deferred, want 49 the first time and one the second", n)
			}
		})
	}
}

// TestLMTPPartialLater is TestLMTPPartial with a Dovecot that refuses for now, and a
// mailbox that has room in the end.
func TestLMTPPartialLater(t *testing.T) {
	t.Parallel()
	s := newPartialScene(t, "quota_full_tempfail = yes")
	s.send()
	s.wantStatus(49, "deferred", "451 4.3.0 Delivered to 48 of 49 recipients")
	s.retry()
	s.wantStatus(48, "sent", "250 2.0.0 Ok: delivered before")
	s.wantStatus(1, "deferred", "452 4.5.3 ")
	s.retry()
	s.wantStatus(1, "deferred", "452 4.2.2 "+overQuota)
	s.wantMailboxes(0)
	s.dovecot.write("etc/dovecot/users", quotaUsers(1000))
	// Dovecot takes a moment to see that its file has changed.
	s.postfix.poll("room for the message", func() bool {
		if len(s.postfix.logLines(s.queueID, "to=<full@example.org>", "status=sent")) > 0 {
			return true
		}
		s.flush()
		return false
	})
	s.wantMailboxes(1)
	s.wantEnd("550 5.1.1 " + unknownUser)
}
