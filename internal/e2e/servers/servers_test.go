package servers

import (
	"net"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestDovecot sends mail through a gate to Dovecot, by TCP and by its socket.
func TestDovecot(t *testing.T) {
	t.Parallel()
	d := startDovecotLMTP(t)
	message := harness.SmallMessage("a@example.com", "lmtp") + ".\r\n..dots\r\n\xff\r\n"
	for user, addr := range map[string]string{"you": "lmtp://" + d.Addr, "me": "lmtp+unix:" + d.Socket} {
		g := harness.StartGate(t, harness.Setup{NextHop: addr})
		c := harness.MustDial(t, g.Addr)
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<nobody@example.org>", "550 5.1.1")
		c.Want(t, "RSET", "250")
		if reply := c.MustSend(t, "a@example.com", user+"@example.org", message); !strings.HasPrefix(reply, "250 2.0.0") {
			t.Errorf("the message was answered with %q", reply)
		}
		wantMessage(t, d.ChrootServer, user, message)
	}
}

// startDovecotLMTP starts a Dovecot with LMTP on a TCP port and on a socket.
func startDovecotLMTP(t testing.TB) harness.Dovecot {
	t.Helper()
	return harness.StartDovecot(t, harness.DovecotLMTP, "lmtp")
}

// TestServers delivers a message through a gate to Exim and OpenSMTPD.
func TestServers(t *testing.T) {
	t.Parallel()
	message := harness.SmallMessage("a@example.com", "servers") + ".\r\n..dots\r\n\xff\r\n"
	for _, s := range []struct {
		name  string
		start func(t testing.TB) *harness.ChrootServer
	}{
		{"Exim", func(t testing.TB) *harness.ChrootServer { return harness.StartExim(t, harness.EximOptions{}) }},
		{"OpenSMTPD", harness.StartOpenSMTPD},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			server := s.start(t)
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + server.Addr})
			reply := harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", harness.Mailbox, message)
			if !strings.HasPrefix(reply, "250") {
				t.Errorf("the message was answered with %q", reply)
			}
			wantMessage(t, server, "you", message)
		})
	}
}

// wantMessage checks that a user has one message, which ends with what was sent.
func wantMessage(t testing.TB, s *harness.ChrootServer, user, message string) {
	t.Helper()
	got := s.Mail(user, 1)
	if len(got) != 1 || !strings.HasSuffix(got[0], strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("%s: the mail for %s arrived changed:\n%q", s.Name, user, got)
	}
}

// TestDovecotLMTP checks what Dovecot does without a gate: it replies for each
// recipient.
func TestDovecotLMTP(t *testing.T) {
	t.Parallel()
	d := startDovecotLMTP(t)
	message := harness.SmallMessage("a@example.com", "lmtp")
	for _, network := range []string{"tcp", "unix"} {
		addr, user := d.Addr, "you"
		if network == "unix" {
			addr, user = d.Socket, "me"
		}
		conn, err := net.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := harness.NewClient(conn)
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "220") {
			t.Fatalf("greeting %q, %v", reply, err)
		}
		t.Log(c.Want(t, "LHLO client.example", "250"))
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		c.Want(t, "RCPT TO:<"+user+"@example.org>", "250")
		c.Want(t, "RCPT TO:<nobody@example.org>", "550")
		c.Want(t, "DATA", "354")
		c.Write(harness.DotStuff([]byte(message)))
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "250") {
			t.Errorf("the message was answered with %q, %v", reply, err)
		}
		wantMessage(t, d.ChrootServer, user, message)
	}
}
