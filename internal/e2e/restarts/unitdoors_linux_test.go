package restarts

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestUnitDoors runs a gate that has only doors under the shipped unit, as docs/installation.md
// says: port 25 stays free, the sockets are where the gate may write, and a handover and a
// restart find them again.
func TestUnitDoors(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("units/spamgate.service.d/postfix.conf", "[Service]\nReadWritePaths=/var/spool/postfix/spamgate\n")
	m.write(unitConfig, harness.Setup{Listen: harness.NoListener, Tables: stateTable + `
[[policy_service]]
name = "run"
addr = "unix:/run/spamgate/policy.sock"
[[policy_service]]
name = "chroot"
addr = "unix:/var/spool/postfix/spamgate/policy.sock"
[[milter]]
name = "milter"
addr = "127.0.0.1:10041"
[[dns_server]]
name = "dns"
addr = "127.0.0.1:5353"
zone = "bl.example.org"
`}.Config())
	m.write("etc/spamgate/blocked.txt", "spam.example\n")
	m.boot()
	m.prepare()
	m.run("install", "-d", "-o", "spamgate", "-m", "755", "/var/spool/postfix/spamgate")
	m.run("ln", "-sf", "/dev/null", "/units/spamgate.socket") // systemctl mask, which writes to /etc/systemd
	m.run("systemctl", "daemon-reload")
	check := func(when string) {
		t.Helper()
		for _, path := range []string{"run/spamgate", "var/spool/postfix/spamgate"} {
			if action, err := m.askPolicy("/"+path+"/policy.sock", "a@spam.example"); err != nil || !strings.HasPrefix(action, "action=550 5.7.1 ") {
				t.Errorf("%s, at %s: %q, %v", when, path, action, err)
			}
			if modes := m.run("stat", "-c", "%a", "/"+path, "/"+path+"/policy.sock"); modes != "755\n666" {
				t.Errorf("%s, %s has the modes %q", when, path, modes)
			}
		}
		if out := m.run("spamgate", "health", "--config", "/"+unitConfig); !strings.Contains(out, "doors  are open: ") || strings.Contains(out, "mail ") {
			t.Errorf("%s: health says %q", when, out)
		}
		if c, err := net.Dial("tcp", port25); err == nil {
			c.Close()
			t.Errorf("%s: somebody listens on port 25", when)
		}
	}
	m.run("systemctl", "start", "spamgate.service")
	check("after the start")
	before := m.show("spamgate.service", "MainPID")
	m.run("spamgate", "handover", "--config", "/"+unitConfig)
	harness.WaitFor(t, "another main process", func() bool { return m.show("spamgate.service", "MainPID") != before })
	check("after a handover")
	m.run("systemctl", "restart", "spamgate.service")
	check("after a restart")
	m.run("systemctl", "kill", "--signal=KILL", "spamgate.service") // Restart=on-failure
	harness.WaitFor(t, "the service to run again", func() bool {
		return m.show("spamgate.service", "NRestarts") == "1" && m.show("spamgate.service", "ActiveState") == "active"
	})
	check("after it was killed")
	m.run("systemctl", "stop", "spamgate.service")
	if out, err := m.command("ls", "/var/spool/postfix/spamgate").CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("what is left of the socket: %q, %v", out, err)
	}
}

// askPolicy asks a policy service of the machine.
func (m *machine) askPolicy(path, from string) (string, error) {
	c, err := net.Dial("unix", fmt.Sprintf("/proc/%d/root%s", m.pid, path))
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	if _, err := fmt.Fprintf(c, "request=smtpd_access_policy\nprotocol_state=RCPT\nsender=%s\nrecipient=b@example.net\n\n", from); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}
