package setup

import (
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/smtpfilter"
)

// TestRules wants listeners and doors to have the same rules for recipients, and those in a file
// to count once the file is read, and as it is then.
func TestRules(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "config.toml"), filepath.Join(dir, "quiet")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "@quiet.example\n!ann@quiet.example\n")
	write(path, `
[policy]
allow_discard = true
mixed_headers = "tag"
[[list]]
name = "blocked"
path = "blocked"
[[milter]]
addr = "127.0.0.1:10041"
[[recipient_policy]]
name = "quiet"
match = "file:quiet"
mode = "monitor"
[[recipient_policy]]
match = ["quiet.example", "other.example", "!bob@other.example"]
lists = ["blocked"]
max_action = "defer"
[[recipient_policy]]
match = "bob@"
exempt = true
`)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ReadRecipients(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]smtpfilter.Policy{"listener": Policy(c, c.Listeners[0]), "door": DoorPolicy(c, c.Doors[0])} {
		check := func(rcpt, want string) {
			t.Helper()
			got := ""
			if r := p.RuleOf(verdict.ParseRecipient(rcpt)); r != nil {
				got = r.Name
			}
			if got != want {
				t.Errorf("%s: %s has the rule %q, want %q", name, rcpt, got, want)
			}
		}
		check("zoe@quiet.example", "recipient_policy-2")
		SetRules(&p, files)
		check("zoe@quiet.example", "quiet")
		check("ann@quiet.example", "recipient_policy-2")
		check("bob@other.example", "recipient_policy-3")
		check("ann@example.net", "")
		if r := p.Recipients; len(r) != 3 || !r[0].Monitor || r[1].MaxAction != verdict.Defer || len(r[1].Lists) != 1 || !r[2].Exempt || p.MixedHeaders != smtpfilter.MixedTag {
			t.Errorf("%s: %+v", name, p)
		}
	}
	p := Policy(c, c.Listeners[0])
	SetRecipients(&p, files)
	write(file, "example.net\n")
	if err := files[0].Look(); err != nil {
		t.Fatal(err)
	}
	if r := p.RuleOf(verdict.ParseRecipient("ann@example.net")); r == nil || r.Name != "quiet" {
		t.Errorf("after a change: %+v", r)
	}
}
