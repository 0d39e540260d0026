package restarts

import (
	"os"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestUnitBroken has installations that were cut off: without the user, without a whole
// program, and with a full disk. A client that waits is served once the user is there, and
// a gate that runs goes on.
func TestUnitBroken(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("etc/spamgate/blocked.txt", "spam.example  # unsolicited mail\n")
	m.write("units/spamgate.service.d/maildir.conf", "[Service]\nReadWritePaths=/srv\n")
	m.configure("maildir:/srv/mail", "", harness.BlockedLists)
	m.boot()
	m.run("install", "-d", "-m", "777", "/srv/mail")
	m.run("sh", "-c", "! getent passwd spamgate || userdel spamgate")

	m.run("systemctl", "start", "spamgate.socket")
	c, err := harness.Connect(port25)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- mailLate(c) }()
	harness.WaitFor(t, "systemd to miss the user", func() bool { return m.show("spamgate.service", "ExecMainStatus") == "217" })
	m.prepare()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(harness.WorkTimeout):
		t.Fatal("the client that waited was not served")
	}

	before := m.show("spamgate.service", "MainPID")
	m.run("cp", "/usr/bin/spamgate", "/usr/local/bin/whole")
	for name, damage := range map[string]string{
		"missing": "rm /usr/bin/spamgate",
		"empty":   "rm -f /usr/bin/spamgate; install -m 755 /dev/null /usr/bin/spamgate",
		"half":    "head -c 3000000 /usr/local/bin/whole >/usr/bin/half; chmod 755 /usr/bin/half; mv /usr/bin/half /usr/bin/spamgate",
	} {
		m.run("sh", "-ec", damage)
		r := runHandover(t, m.command("/usr/local/bin/whole", "handover", "--config", unitConfig, "--json"), 2)
		if !strings.Contains(r.Error, "the running gate goes on") || !strings.Contains(r.Error, "install it again") {
			t.Errorf("%s program: %+v", name, r)
		}
		m.deliver(name)
	}
	if current := m.show("spamgate.service", "MainPID"); current != before {
		t.Errorf("the main process is %s, and was %s", current, before)
	}
	m.run("install", "/usr/local/bin/whole", "/usr/bin/spamgate")

	// The disk with the state is full. The mail has another one.
	m.run("sh", "-ec", "mount -t tmpfs -o size=100k none /var/lib/spamgate; chown spamgate: /var/lib/spamgate; chmod 700 /var/lib/spamgate")
	m.run("systemctl", "restart", "spamgate.service")
	m.run("sh", "-c", "! dd if=/dev/zero of=/var/lib/spamgate/full bs=1k 2>/dev/null")
	runHandover(t, m.command("spamgate", "handover", "--config", unitConfig, "--json"), 0)
	m.deliver("full")
	harness.WantRefusal(t, harness.WaitVerdict(t, port25, "x@spam.example", "550"), "x@spam.example", "blocked", "unsolicited mail")
	out, err := m.command("spamgate", "health", "--config", unitConfig).Output()
	// What the handover has removed may leave some room.
	if text := string(out); err == nil || !strings.Contains(text, "no space left") && !strings.Contains(text, "make room") {
		t.Errorf("health with a full disk: %v\n%s", err, text)
	}
	mail, err := os.ReadDir(m.path("srv/mail/new"))
	if err != nil || len(mail) != 5 {
		t.Errorf("%d messages delivered, %v; want 5", len(mail), err)
	}
}
