package policyservice

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestGone: while the gate is dead, Postfix takes the default action that its configuration
// says; when the gate is back, Postfix asks it again.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ restriction, gone string }{
		"trial":  {recommended, "250"},
		"strict": {"smtpd_recipient_restrictions = reject_unauth_destination, check_policy_service POLICY", "451 4.3.5 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := harness.FreeAddr(t)
			dir := gateSetup(addr).Dir(t)
			g := harness.Serve(t, dir)
			p := startPostfix(t, smtpd, "inet:"+addr, tt.restriction)
			c := harness.MustDial(t, p.Addr)
			want := func(reply string) {
				t.Helper()
				got, err := c.Verdict("a@spam.example", "you@example.org")
				if err != nil || !strings.HasPrefix(got, reply) {
					t.Fatalf("%s, %v; want %s", got, err, reply)
				}
			}
			want("550 5.7.1 ")
			g.Ended = true
			g.Kill()
			<-g.Exited
			want(tt.gone)
			want(tt.gone)
			harness.Serve(t, dir)
			want("550 5.7.1 ")
		})
	}
}

// TestRestarted: a gate that stops lets Postfix wait for the next one: no message passes
// unjudged, although Postfix would let it.
func TestRestarted(t *testing.T) {
	t.Parallel()
	addr := harness.FreeAddr(t)
	dir := gateSetup(addr).Dir(t)
	g := harness.Serve(t, dir)
	p := startPostfix(t, smtpd, "inet:"+addr, recommended)
	c := harness.MustDial(t, p.Addr)
	for range 3 {
		if got, err := c.Verdict("a@spam.example", "you@example.org"); err != nil || !strings.HasPrefix(got, "550 5.7.1 ") {
			t.Fatalf("%s, %v", got, err)
		}
		g.Stop()
		g.Ended = true
		g = harness.Serve(t, dir)
	}
}

// TestChroot: a chrooted smtpd reaches a socket below the queue directory, with a path from
// there.
func TestChroot(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, smtpd, "unix:spamgate/policy", recommended)
	socket := filepath.Join(p.Dir, "queue/spamgate/policy")
	if out, err := exec.Command("install", "-d", "-g", "postfix", "-m", "0710", filepath.Dir(socket)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	g := harness.StartGate(t, gateSetup("unix:"+socket))
	s := &site{t, p, g}
	s.dial("").Want(t, "MAIL FROM:<a@spam.example>", "250")
	if got, err := s.dial("").Verdict("a@spam.example", "you@example.org"); err != nil || !strings.HasPrefix(got, "550 5.7.1 ") {
		t.Errorf("%s, %v", got, err)
	}
	if lines := s.LogLines("smtpd", "warning"); lines != nil {
		t.Errorf("Postfix warns: %q", lines)
	}
	if out, err := exec.Command("postfix", "-c", filepath.Join(p.Dir, "conf"), "check").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("postfix check: %v\n%s", err, out)
	}
}

// TestPostscreen: Postfix's postscreen looks at the client first, and the gate at the sender
// then.
func TestPostscreen(t *testing.T) {
	t.Parallel()
	s := open(t, `ADDR:PORT inet n - y - 1 postscreen
smtpd pass - - y - - smtpd
dnsblog unix - - y - 0 dnsblog`, recommended, "postscreen_greet_wait = 1s", "postscreen_cache_map =", "postscreen_access_list = permit_mynetworks")
	c := s.dial("127.0.0.7")
	c.Want(t, "MAIL FROM:<a@spam.example>", "250")
	c.Want(t, "RCPT TO:<you@example.org>", "550 5.7.1 <you@example.org>: Recipient address rejected: <a@spam.example> refused: list blocked")
	if client := s.gate.WaitRecord("refused").Text("client"); !strings.HasPrefix(client, "127.0.0.7:") {
		t.Errorf("the log names the client %s", client)
	}
	if s.LogLines("postscreen", "PASS NEW [127.0.0.7]") == nil {
		t.Error("postscreen has not looked at the client")
	}
}
