package exports

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestPostfix has the SMTP server of Postfix look up senders in exported tables.
func TestPostfix(t *testing.T) {
	dots := func(entry string) bool { return strings.Contains(entry, `"`) }
	both := func(entry string) bool {
		return dots(entry) || strings.HasPrefix(strings.TrimPrefix(entry, "!"), "@") || strings.HasPrefix(strings.TrimPrefix(entry, "!"), "*.")
	}
	bare := func(entry string) bool {
		return both(entry) || !strings.ContainsAny(entry, "@<") && !strings.HasPrefix(strings.TrimPrefix(entry, "!"), ".")
	}
	for _, c := range []struct {
		name, match string
		flags       []string
		lacks       func(string) bool
		parents     string // parent_domain_matches_subdomains
	}{
		{"default", "subtree", nil, both, "smtpd_access_maps"},
		{"dots", "subtree", nil, both, ""},
		{"exact", "exact", nil, bare, "smtpd_access_maps"},
		{"--dot-subdomains", "subtree", []string{"--dot-subdomains"}, dots, ""},
		{"--dot-subdomains exact", "exact", []string{"--dot-subdomains"}, dots, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newList(t, c.match, groupsFor(1, decisions()))
			table, stderr := l.export(t, "postfix", c.flags...)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			t.Log(lines[len(lines)-1])
			p := startPostfix(t, l.dir, table, c.parents)
			l.compare(t, p.refuses, c.lacks)
		})
	}
}

// An accessTable is an SMTP server that looks up senders in a table.
type accessTable struct {
	t      *testing.T
	server *harness.Postfix
	client *harness.Client
}

// startPostfix makes a table of its source, and starts a Postfix that uses it.
func startPostfix(t *testing.T, dir, source, parents string) *accessTable {
	t.Helper()
	harness.WriteFile(t, filepath.Join(dir, "postmap/main.cf"), "compatibility_level = 3.6\n")
	cmd := exec.Command(harness.Program(t, "postmap", "postfix"), "-c", filepath.Join(dir, "postmap"), "hash:"+source)
	if stdout, stderr, code := harness.Run(t, cmd); code != 0 || stdout+stderr != "" {
		t.Fatalf("postmap: exit code %d: %s%s", code, stdout, stderr)
	}
	return servePostfix(t, source, parents)
}

// servePostfix starts a Postfix that uses a table.
func servePostfix(t *testing.T, source, parents string) *accessTable {
	t.Helper()
	p := harness.StartPostfix(t, harness.Everywhere, "smtpd_delay_reject = no", "smtpd_error_sleep_time = 0",
		"smtpd_soft_error_limit = 1000000", "smtpd_hard_error_limit = 1000000", "recipient_delimiter = +",
		"smtpd_junk_command_limit = 1000000", "parent_domain_matches_subdomains = "+parents,
		"smtpd_sender_restrictions = check_sender_access hash:"+source)
	return &accessTable{t, p, harness.MustDial(t, p.Addr)}
}

// refuses reports whether Postfix refuses a sender for the table. It is not asked about
// senders whose syntax Postfix refuses.
func (a *accessTable) refuses(sender string) (refused, asked bool) {
	if sender == "<>" {
		sender = ""
	}
	reply, err := a.client.Ask("MAIL FROM:<" + sender + "> SMTPUTF8")
	if err == nil && strings.HasPrefix(reply, "250") {
		reply, err = a.client.Ask("RSET")
	}
	switch {
	case err == nil && strings.HasPrefix(reply, "250"):
		return false, true
	case err == nil && strings.HasPrefix(reply, "501 5.1.7"):
		return false, false
	case err != nil || !strings.Contains(reply, "Sender address rejected: Access denied"):
		a.t.Fatalf("MAIL FROM:<%s>: %q, %v", sender, reply, err)
	}
	return true, true
}
