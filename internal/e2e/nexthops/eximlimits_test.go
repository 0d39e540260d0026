package nexthops

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestEximConnections has more clients than Exim takes connections by default
// (smtp_accept_max, 20), each with its own connection to Exim: clients that quit one
// after the other, and clients that stay.
func TestEximConnections(t *testing.T) {
	t.Parallel()
	for _, stay := range []bool{false, true} {
		t.Run(map[bool]string{false: "quitting", true: "staying"}[stay], func(t *testing.T) {
			t.Parallel()
			s := harness.StartExim(t, harness.EximOptions{ProxyFrom: harness.Everywhere})
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + s.Addr, Keys: map[string]string{"next_hop": `proxy = "v2"`}})
			const clients = 40
			for i := range clients {
				c := harness.MustDial(t, g.Addr)
				if reply := c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "connections")); !strings.HasPrefix(reply, "250") {
					t.Fatalf("client %d was answered with %q", i+1, reply)
				}
				if !stay {
					c.Want(t, "QUIT", "221")
					c.Close()
				}
			}
			s.Mail("you", clients)
		})
	}
}

// TestEximConnectionsCut is TestEximConnections with clients that close the connection
// without QUIT, some in a transaction.
func TestEximConnectionsCut(t *testing.T) {
	t.Parallel()
	s := harness.StartExim(t, harness.EximOptions{ProxyFrom: harness.Everywhere})
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + s.Addr, Keys: map[string]string{"next_hop": `proxy = "v2"`}})
	for i := range 40 {
		c := harness.MustDial(t, g.Addr)
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		if reply := c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "250"); i%2 == 0 {
			t.Log(reply)
			c.Want(t, "RSET", "250")
		}
		c.Close()
	}
}

// TestEximQueue sends more messages over kept connections than Exim by default delivers
// at once from one connection (smtp_accept_queue_per_connection, 10).
func TestEximQueue(t *testing.T) {
	t.Parallel()
	s := harness.StartExim(t, harness.EximOptions{})
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + s.Addr})
	const clients, messages = 2, 20
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c, err := harness.Dial(g.Addr, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for range messages {
				reply, err := c.Send("a@example.com", harness.Mailbox, []byte(harness.SmallMessage("a@example.com", "queue")))
				if err != nil || !strings.HasPrefix(reply, "250") { // of two lines, to a chunk
					t.Errorf("a message was answered with %q, %v", reply, err)
				}
			}
		})
	}
	all.Wait()
	s.Mail("you", clients*messages) // the next queue run is an hour away
	harness.WaitFor(t, "an empty queue", func() bool { return len(eximQueue(t, s)) == 0 })
	if lines := s.LogLines("no immediate delivery"); len(lines) > 0 {
		t.Errorf("Exim has not delivered at once: %q", lines)
	}
}

// TestEximQueueKey is TestEximQueue with an Exim whose greeting does not name Exim, so
// that the gate has to be told by messages_per_connection.
func TestEximQueueKey(t *testing.T) {
	t.Parallel()
	for key, delivered := range map[string]bool{"messages_per_connection = 10": true, "": false} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			s := harness.StartExim(t, harness.EximOptions{Banner: "mx.example.org ESMTP"})
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + s.Addr, Keys: map[string]string{"next_hop": key}})
			c := harness.MustDial(t, g.Addr)
			for range 15 {
				c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", "queue"))
			}
			if delivered {
				s.Mail("you", 15)
				return
			}
			s.WaitLog(5, "no immediate delivery") // otherwise the test proves nothing
		})
	}
}

// eximQueue returns the messages in Exim's queue.
func eximQueue(t testing.TB, s *harness.ChrootServer) []string {
	t.Helper()
	headers, err := filepath.Glob(filepath.Join(s.Root, "var/spool/exim4/input/*-H"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.Root, "var/spool/exim4/input")); err != nil {
		t.Fatal(err)
	}
	return headers
}
