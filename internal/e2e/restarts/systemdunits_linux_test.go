package restarts

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// stateTable has the state in the unit's directory.
const stateTable = "[state]\ndir = \"/var/lib/spamgate\"\n"

// TestStartFailsForLong has the shipped units start a gate that cannot start: its
// configuration is broken, and then a list is missing. Clients are never refused; they
// wait, and are served as soon as the list is there.
func TestStartFailsForLong(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const addr = "127.0.0.1:25"
	config := harness.Setup{Listen: "systemd", NextHop: "maildir:/var/lib/spamgate/mail",
		Keys: map[string]string{"next_hop": "allow_public = true"}, Tables: stateTable}.Config()
	m.write("etc/spamgate/config.toml", config+"[[list]\n")
	m.boot()
	m.run("systemd-sysusers", "spamgate.conf")
	m.run("systemctl", "start", "spamgate.socket")

	served := make(chan error, 100)
	waiting := 0
	add := func() {
		t.Helper()
		c, err := harness.Connect(addr)
		if err != nil {
			t.Fatalf("client %d after %s restarts: %v", waiting, m.show("spamgate.service", "NRestarts"), err)
		}
		waiting++
		go func() {
			defer c.Close()
			served <- mailLate(c)
		}()
	}
	// The first connection starts the service.
	add()
	const enough = 4 // failed starts of each kind; systemd's default limit is five in ten seconds
	seen := 0
	failMore := func(why string) {
		t.Helper()
		until := seen + enough
		harness.WaitFor(t, fmt.Sprintf("%d more failed starts, %s", enough, why), func() bool {
			n, err := strconv.Atoi(m.show("spamgate.service", "NRestarts"))
			if err != nil {
				t.Fatal(err)
			}
			if state := m.show("spamgate.socket", "ActiveState"); state != "active" {
				t.Fatalf("the socket is %s after %d restarts", state, n)
			}
			if n > seen {
				seen = n
				add()
			}
			return n >= until
		})
	}
	failMore("with a broken configuration")
	m.write("etc/spamgate/config.toml", config)
	failMore("without the list")
	m.write("etc/spamgate/blocked.txt", "spam.example\n")
	add()
	for range waiting {
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(harness.WorkTimeout):
			t.Fatal("a client was not served")
		}
	}
	text := m.journal()
	count := strings.Count(text, "spamgate: ")
	for _, why := range []string{"config.toml:", "blocked.txt"} {
		if !strings.Contains(text, why) {
			t.Errorf("the log does not say %q", why)
		}
	}
	if count < 2*enough {
		t.Errorf("%d starts have said why they failed, want %d", count, 2*enough)
	}
	t.Logf("%d failed starts, %d clients waited and were served", count, waiting)
	m.run("systemctl", "stop", "spamgate.socket", "spamgate.service")
	if result := m.show("spamgate.service", "Result"); result != "success" {
		t.Errorf("the service's result is %s", result)
	}
}

// mailLate waits for the greeting, however late, and sends a message.
func mailLate(c *harness.Client) error {
	c.SetReadDeadline(time.Now().Add(harness.WorkTimeout))
	if _, err := c.Reader.Peek(1); err != nil {
		return fmt.Errorf("waiting for the greeting: %w", err)
	}
	for _, say := range []func() (string, error){
		c.Reply,
		func() (string, error) { return c.Ask("EHLO client.example") },
		func() (string, error) {
			return c.Send("a@example.com", "b@example.net", []byte(harness.SmallMessage("a@example.com", "late")))
		},
	} {
		if reply, err := say(); err != nil || reply[0] != '2' {
			return fmt.Errorf("heard %q, %w", reply, err)
		}
	}
	return nil
}
