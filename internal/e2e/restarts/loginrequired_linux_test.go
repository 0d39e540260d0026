package restarts

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestLoginRequired has a listener require a login from a reload on, and after a handover.
// While the next hop offers no AUTH, log and health say that nobody can pass.
func TestLoginRequired(t *testing.T) {
	t.Parallel()
	with, without := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}}), smtptest.NewSink(t)
	dir := t.TempDir()
	cert, key := harness.NewPEM(t, "gate.example", 1)
	harness.WriteFile(t, filepath.Join(dir, "gate.pem"), cert)
	harness.WriteFile(t, filepath.Join(dir, "gate.key"), key)
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "")
	write := func(hop *smtptest.Sink, auth string) {
		s := harness.Setup{NextHop: "smtp://" + hop.Addr(), Tables: listenerTable("submission", "required", fmt.Sprintf("auth = %q", auth))}
		harness.WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	}
	const from, login = "MAIL FROM:<a@example.com>", "AUTH PLAIN AGFubgBzZWNyZXQ="
	write(without, "pass")
	g := harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	addr := strings.Split(g.WaitListening(), ",")[1]
	dial := func() *harness.Client {
		c := harness.MustDial(t, addr)
		c.Want(t, "STARTTLS", "220")
		beginTLS(t, c, false)
		return c
	}
	dial().Want(t, from, "250")

	problem := "no mail can pass at the listener submission: it requires a login, and the next hop smtp://" + without.Addr() + " does not offer AUTH to the gate " +
		"(Postfix: smtpd_sasl_auth_enable = yes; with smtpd_tls_auth_only = yes the gate needs next_hop.tls too)"
	write(without, "require")
	g.Signal(syscall.SIGHUP)
	g.WaitNth(1, "reloaded")
	if n := len(g.Records(problem)); n != 1 {
		t.Errorf("the log has the problem %d times", n)
	}
	dial().Want(t, from, "530 5.7.0 Authentication required")
	if out := g.Command(t, 1, "health"); !strings.Contains(strings.Join(strings.Fields(out), " "), problem) {
		t.Errorf("health says\n%s", out)
	}

	g.HandOver()
	g.WaitNth(2, problem)
	dial().Want(t, from, "530")

	write(with, "require")
	g.Signal(syscall.SIGHUP)
	g.WaitNth(2, "reloaded")
	g.Command(t, 0, "health")
	c := dial()
	c.Want(t, from, "530")
	c.Want(t, login, "235")
	c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m"))
	if n := len(g.Records(problem)); n != 2 {
		t.Errorf("the log has the problem %d times", n)
	}
}
