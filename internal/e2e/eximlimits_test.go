package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestEximConnections has more clients than Exim takes connections by default (20,
// smtp_accept_max), each with connections of its own: one after the other, and all of
// them staying for a while.
func TestEximConnections(t *testing.T) {
	t.Parallel()
	for _, stay := range []bool{false, true} {
		t.Run(map[bool]string{false: "quitting", true: "staying"}[stay], func(t *testing.T) {
			t.Parallel()
			s := startExim(t, eximOptions{proxyFrom: everywhere})
			g := startGate(t, setup{nextHop: "smtp://" + s.addr, keys: map[string]string{"next_hop": `proxy = "v2"`}})
			const clients = 40
			for i := range clients {
				c := mustDial(t, g.addr)
				if reply := c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "connections")); !strings.HasPrefix(reply, "250 ") {
					t.Fatalf("client %d was answered with %q", i+1, reply)
				}
				if !stay {
					c.want(t, "QUIT", "221")
					c.Close()
				}
			}
			s.mail("you", clients)
		})
	}
}

// TestEximConnectionsCut is TestEximConnections with clients that go away without a
// word, some in the middle of a transaction.
func TestEximConnectionsCut(t *testing.T) {
	t.Parallel()
	s := startExim(t, eximOptions{proxyFrom: everywhere})
	g := startGate(t, setup{nextHop: "smtp://" + s.addr, keys: map[string]string{"next_hop": `proxy = "v2"`}})
	for i := range 40 {
		c := mustDial(t, g.addr)
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		if reply := c.want(t, "RCPT TO:<"+mailbox+">", "250"); i%2 == 0 {
			t.Log(reply)
			c.want(t, "RSET", "250")
		}
		c.Close()
	}
}

// TestEximQueue sends more messages over kept connections than Exim delivers at once of
// those that come on one, by default (10, smtp_accept_queue_per_connection).
func TestEximQueue(t *testing.T) {
	t.Parallel()
	s := startExim(t, eximOptions{})
	g := startGate(t, setup{nextHop: "smtp://" + s.addr})
	const clients, messages = 2, 20
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c, err := dial(g.addr, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for range messages {
				reply, err := c.send("a@example.com", mailbox, []byte(letter("a@example.com", "queue")))
				if err != nil || !strings.HasPrefix(reply, "250 ") {
					t.Errorf("a message was answered with %q, %v", reply, err)
				}
			}
		})
	}
	all.Wait()
	s.mail("you", clients*messages) // the next queue run is in an hour
	pollFor(t, "an empty queue", func() bool { return len(eximQueue(t, s)) == 0 })
	if lines := s.logLines("no immediate delivery"); len(lines) > 0 {
		t.Errorf("Exim has not delivered at once: %q", lines)
	}
}

// TestEximQueueKey is TestEximQueue with an Exim that does not greet as one.
func TestEximQueueKey(t *testing.T) {
	t.Parallel()
	for key, delivered := range map[string]bool{"messages_per_connection = 10": true, "": false} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			s := startExim(t, eximOptions{banner: "mx.example.org ESMTP"})
			g := startGate(t, setup{nextHop: "smtp://" + s.addr, keys: map[string]string{"next_hop": key}})
			c := mustDial(t, g.addr)
			for range 15 {
				c.mustSend(t, "a@example.com", mailbox, letter("a@example.com", "queue"))
			}
			if delivered {
				s.mail("you", 15)
				return
			}
			s.waitLog(5, "no immediate delivery") // or the test proves nothing
		})
	}
}

// eximQueue are the messages in Exim's queue.
func eximQueue(t testing.TB, s *tree) []string {
	t.Helper()
	headers, err := filepath.Glob(filepath.Join(s.root, "var/spool/exim4/input/*-H"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.root, "var/spool/exim4/input")); err != nil {
		t.Fatal(err)
	}
	return headers
}
