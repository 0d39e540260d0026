package servers

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/mailservers"
)

// serverFindings returns what "config init --check" finds wrong with the configuration of a
// server, which its own program has printed.
func serverFindings(t *testing.T, server, nextHop, config string) (wrong []mailservers.Finding) {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), "config", "init", "--for", server, "--check", "--json", "--listen", "127.0.0.1:0", "--next-hop", nextHop, "--server-config", "-")
	cmd.Stdin = strings.NewReader(config)
	out, errs, _ := harness.Run(t, cmd)
	var report struct{ Lines []mailservers.Finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Lines) == 0 {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	for _, l := range report.Lines {
		if l.Status != mailservers.Present {
			wrong = append(wrong, l)
		}
	}
	return wrong
}

// TestCheckDovecotUsers asks a Dovecot for a user of the system by an address. The check finds the
// reason why there is none, and nothing if there is one.
func TestCheckDovecotUsers(t *testing.T) {
	t.Parallel()
	const format, line = "auth_username_format = ", "auth_username_format = %Ln"
	for name, test := range map[string]struct {
		more, reply string
		found       bool
	}{
		"default":            {"", "550 5.1.1", true},
		"the domain":         {format + "%Lu\n", "550 5.1.1", true},
		"without it":         {format + "%Ln\n", "250", false},
		"without it in LMTP": {"protocol lmtp {\n  " + format + "%Ln\n}\n", "250", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.StartDovecot(t, harness.DovecotLMTP+"\n"+test.more+"userdb {\n  driver = passwd\n}", "lmtp")
			g := harness.StartGate(t, harness.Setup{NextHop: "lmtp://" + d.Addr})
			c := harness.MustDial(t, g.Addr)
			c.Want(t, "MAIL FROM:<a@example.com>", "250")
			c.Want(t, "RCPT TO:<vmail@example.org>", test.reply)
			for _, args := range [][]string{nil, {"-n"}} {
				found := serverFindings(t, "lmtp", "lmtp://"+d.Addr, d.Run("/usr/bin/doveconf", args...))
				if is := len(found) == 1 && found[0].Line == line && found[0].Advice; is != test.found || !is && len(found) > 0 {
					t.Errorf("doveconf %q: %+v", args, found)
				}
			}
		})
	}
}

// TestCheckEximSupport reads what an Exim says about itself, and the same without PROXY.
func TestCheckEximSupport(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "exim")
	s := harness.StartExim(t, harness.EximOptions{Listen: e.ReplaceIn(e.Lines(0), "127.0.0.1.10025", "ADDR.PORT")})
	config, version := s.Run("/usr/sbin/exim4", "-bP"), s.Run("/usr/sbin/exim4", "-bV")
	if found := serverFindings(t, "exim", "smtp://"+s.Addr, config+version); len(found) > 0 {
		t.Errorf("as it should be: %+v", found)
	}
	found := serverFindings(t, "exim", "smtp://"+s.Addr, config+e.ReplaceIn(version, " PROXY ", " "))
	if len(found) != 1 || found[0].Line != "Support for: ... PROXY" || found[0].Good() {
		t.Errorf("without PROXY: %+v", found)
	}
}
