package doors

import (
	"io"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// stopTables are doors of each kind.
const stopTables = `
[[policy_service]]
name = "policy"
addr = "unix:policy.sock"
[[milter]]
name = "milter"
addr = "127.0.0.1:0"
[[dns_server]]
name = "dns"
addr = "127.0.0.1:0"
zone = "bl.example.org"
`

// TestStop stops a gate while a message is at the milter: idle connections end, no new ones are
// taken, the message gets its answer, and DNS is answered until then.
func TestStop(t *testing.T) {
	t.Parallel()
	g := startDoors(t, harness.Setup{Listen: harness.NoListener, Tables: stopTables})
	idle := &policyClient{addr: doorAddr(g, "policy")}
	if _, err := idle.ask("a@example.com"); err != nil {
		t.Fatal(err)
	}
	busy, answer, err := beginMilter(doorAddr(g, "milter"), "a@example.com")
	if err != nil || answer != "c" {
		t.Fatalf("the recipient's answer is %q, %v", answer, err)
	}
	g.Signal(syscall.SIGTERM)
	if _, err := idle.r.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection: %v, want its end", err)
	}
	if c, err := dialDoor(idle.addr); err == nil {
		c.Close()
		t.Error("the policy service takes a new connection")
	}
	if text, err := askDNS("udp", doorAddr(g, "dns"), "spam.example.bl.example.org"); text != "NOERROR 127.0.0.2" || err != nil {
		t.Errorf("DNS, while a message is not finished: %q, %v", text, err)
	}
	if err := busy.send("LFrom\x00 a@spam.example\x00", "E"); err != nil {
		t.Fatal(err)
	}
	if answer, err := busy.answer(); err != nil || len(answer) < 4 || answer[:4] != "y550" {
		t.Errorf("the message's answer is %q, %v", answer, err)
	}
	if code := g.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestStopInTime stops a gate while a message at the milter does not go on: its connection is
// closed after shutdown_timeout, or at the second signal.
func TestStopInTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		timeout string
		again   bool
	}{"time": {"200ms", false}, "second signal": {"1h", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startDoors(t, harness.Setup{Listen: harness.NoListener, Tables: stopTables,
				Keys: map[string]string{"listen": `shutdown_timeout = "` + test.timeout + `"`}})
			busy, _, err := beginMilter(doorAddr(g, "milter"), "a@example.com")
			if err != nil {
				t.Fatal(err)
			}
			g.Signal(syscall.SIGTERM)
			g.WaitRecord("stopping")
			if test.again {
				g.Signal(syscall.SIGTERM)
			}
			if _, err := busy.answer(); err == nil {
				t.Error("the message got an answer")
			}
			if code := g.Wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			g.WaitRecord("stopped before all mail was finished; its clients try again")
		})
	}
}
