package nexthops

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// dovecotQuota has Dovecot take mail by LMTP and check quotas, which it does after it
// has the message.
const dovecotQuota = harness.DovecotLMTP + `
protocol lmtp {
  mail_plugins = quota
}
plugin {
  quota = maildir:User quota
  quota_rule = *:storage=100M
}
FULL`

// quotaUsers returns the users u1 to u48, and full, whose mailbox has that quota.
func quotaUsers(kilobytes int) string {
	var users strings.Builder
	user := func(name, more string) {
		fmt.Fprintf(&users, "%s@example.org:{plain}secret:%d:%d::/var/mail/%s::%s\n", name, harness.VmailUID, harness.VmailUID, name, more)
	}
	for i := range 48 {
		user(fmt.Sprintf("u%d", i+1), "")
	}
	user("full", fmt.Sprintf("userdb_quota_rule=*:storage=%dK", kilobytes))
	return users.String()
}

// A partialScene is a Postfix with its own defaults that sends through a gate to a
// Dovecot. Dovecot has 48 mailboxes with room and one that is full.
type partialScene struct {
	t       *testing.T
	postfix *harness.Postfix
	gate    *harness.Gate
	dovecot harness.Dovecot
	queueID string
}

func newPartialScene(t *testing.T, whenFull string) *partialScene {
	t.Helper()
	d := harness.StartDovecot(t, strings.Replace(dovecotQuota, "FULL", whenFull, 1), "lmtp")
	d.Write("etc/dovecot/users", quotaUsers(1))
	listen := harness.FreeAddr(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "lmtp+unix:" + d.Socket, Listen: listen})
	host, port, _ := net.SplitHostPort(listen)
	// postqueue -f needs pickup.
	p := harness.StartPostfixService(t, harness.PostfixSmtpd+"\npickup unix n - n 60 1 pickup", harness.Everywhere,
		"relayhost = ["+host+"]:"+port,
		"virtual_mailbox_domains = sender.example",
		"virtual_mailbox_maps = inline:{ ann@sender.example=you/ }")
	return &partialScene{t: t, postfix: p, gate: g, dovecot: d}
}

// send gives Postfix a message for the 48, for full and for nobody, who does not exist.
func (s *partialScene) send() {
	s.t.Helper()
	c := harness.MustDial(s.t, s.postfix.Addr)
	c.Want(s.t, "MAIL FROM:<ann@sender.example>", "250")
	c.Want(s.t, "RCPT TO:<full@example.org>", "250")
	for i := range 48 {
		c.Want(s.t, fmt.Sprintf("RCPT TO:<u%d@example.org>", i+1), "250")
	}
	c.Want(s.t, "RCPT TO:<nobody@example.org>", "250")
	c.Want(s.t, "DATA", "354")
	message := harness.SmallMessage("ann@sender.example", "many") + strings.Repeat("A line of the message.\r\n", 200)
	c.Write(harness.DotStuff([]byte(message)))
	reply, err := c.Reply()
	id, ok := strings.CutPrefix(reply, "250 2.0.0 Ok: queued as ")
	if err != nil || !ok {
		s.t.Fatalf("Postfix said %q, %v", reply, err)
	}
	s.queueID = id
}

// retry waits until the message is in the queue, and has Postfix try again.
func (s *partialScene) retry() {
	s.t.Helper()
	harness.WaitFor(s.postfix.T, "the message to be deferred", func() bool {
		files, _ := filepath.Glob(filepath.Join(s.postfix.Dir, "queue/deferred/*", s.queueID))
		return len(files) > 0
	})
	s.flush()
}

// flush has Postfix try to deliver what is in its queue.
func (s *partialScene) flush() {
	s.t.Helper()
	cmd := exec.Command("postqueue", "-c", filepath.Join(s.postfix.Dir, "conf"), "-f")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("postqueue: %v\n%s", err, out)
	}
}

// restart kills the gate and starts another one in its place.
func (s *partialScene) restart() {
	s.t.Helper()
	s.gate.Kill()
	s.gate.Wait()
	s.gate = harness.Serve(s.t, s.gate.Dir)
}

// wantStatus waits until Postfix has logged n recipients with that status and text.
func (s *partialScene) wantStatus(n int, status, text string) {
	s.t.Helper()
	s.postfix.WaitLog(n, s.queueID+": to=<", "status="+status, text)
}

// wantMailboxes checks that each of the 48 mailboxes has the message once, and full as
// often as given.
func (s *partialScene) wantMailboxes(full int) {
	s.t.Helper()
	s.dovecot.Mail("u48", 1)
	count := func(user string) int {
		files, err := filepath.Glob(filepath.Join(s.dovecot.Root, "var/mail", user, "new", "*"))
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

// wantEnd waits until Postfix is done with the message. It checks that the sender got
// bounces with these words, and no others.
func (s *partialScene) wantEnd(words ...string) {
	s.t.Helper()
	s.postfix.WaitLog(1, s.queueID+": removed")
	var files []string
	harness.WaitFor(s.postfix.T, "bounces", func() bool {
		files, _ = filepath.Glob(filepath.Join(s.postfix.Dir, "mail/you/new/*"))
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

// TestLMTPPartial sends a message to 50 recipients through Postfix and a gate to
// Dovecot. 48 get it at the first delivery, each once. The sender gets Dovecot's replies
// for the two others, after two retries. The gate may be killed before each.
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
				// Recipients that have it come first, in whichever order Postfix names them.
				s.wantStatus(48, "sent", "250 2.0.0 Ok: delivered before")
				s.wantStatus(1, "deferred", "452 4.5.3 ")
			}
			s.wantStatus(1, "bounced", "552 5.2.2 "+overQuota)
			s.wantMailboxes(0)
			s.wantEnd("550 5.1.1 "+unknownUser, "552 5.2.2 "+overQuota)
			if n := len(s.postfix.LogLines(s.queueID, "status=deferred")); n != 50 {
				t.Errorf("%d recipients were deferred, want 49 the first time and one the second", n)
			}
		})
	}
}

// TestLMTPPartialLater is TestLMTPPartial with a Dovecot whose refusals are temporary,
// and a mailbox that has room in the end.
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
	s.dovecot.Write("etc/dovecot/users", quotaUsers(1000))
	// Dovecot needs a moment to notice that its file has changed.
	harness.WaitFor(s.postfix.T, "room for the message", func() bool {
		if len(s.postfix.LogLines(s.queueID, "to=<full@example.org>", "status=sent")) > 0 {
			return true
		}
		s.flush()
		return false
	})
	s.wantMailboxes(1)
	s.wantEnd("550 5.1.1 " + unknownUser)
}
