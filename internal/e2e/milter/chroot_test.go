package milter

import (
	"os/exec"
	"path/filepath"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestChroot: Debian's chrooted smtpd reaches a socket below the queue directory with the line
// of the documentation, and passes mail while the gate is gone.
func TestChroot(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfixService(t, "ADDR:PORT inet n - y - - smtpd", harness.Everywhere,
		"smtpd_milters = { unix:spamgate/milter, default_action=accept }")
	socket := filepath.Join(p.Dir, "queue/spamgate/milter")
	if out, err := exec.Command("install", "-d", "-g", "postfix", "-m", "0710", filepath.Dir(socket)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	verdict := func(want string) {
		t.Helper()
		c := harness.MustDial(t, p.Addr)
		c.Want(t, "MAIL FROM:<a@reject.example>", "250")
		c.Want(t, "RCPT TO:<"+harness.Mailbox+">", want)
		c.Close()
	}
	verdict("250")
	g := serve(t, gateDir(t, "unix:"+socket, ""))
	verdict("550 5.7.1 <a@reject.example> refused: list blocked")
	g.Stop()
	g.Ended = true
	verdict("250")
}
