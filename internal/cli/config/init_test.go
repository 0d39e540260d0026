package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/mailservers"
)

var update = flag.Bool("update", false, "write docs/examples")

const examples = "../../../docs/examples"

// exampleFlags are the flags of the examples, besides --for.
func exampleFlags(server mailservers.Kind) *initOptions {
	o := &initOptions{
		server: server, hostname: "mx.example.org", domains: []string{"example.org"}, listen: ":25",
		tlsCert: "/etc/ssl/mx.example.org.pem", tlsKey: "/etc/ssl/private/mx.example.org.key",
	}
	switch server {
	case mailservers.Remote:
		o.nextHop = "smtp://mx.example.net:25"
	case mailservers.Maildir:
		o = &initOptions{server: server}
	case mailservers.PostfixPolicy, mailservers.PostfixMilter:
		o = &initOptions{server: server, hostname: "mx.example.org", contact: "ask postmaster@example.org"}
	case mailservers.Rspamd, mailservers.DNS:
		o = &initOptions{server: server, hostname: "mx.example.org", contact: "ask postmaster@example.org", zone: "bl.example.org"}
	}
	return o
}

// TestExamples compares docs/examples with what config init writes.
func TestExamples(t *testing.T) {
	for _, server := range mailservers.Kinds {
		o := exampleFlags(server)
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		c, err := o.parse()
		if err != nil {
			t.Fatal(err)
		}
		s, err := settingsOf(c, server)
		if err != nil {
			t.Fatal(err)
		}
		blocks, commands := mailservers.Lines(server, s)
		var lines strings.Builder
		initReport{Server: blocks, Commands: commands}.printServer(&lines)
		compare(t, string(server)+".toml", o.configText())
		if len(blocks) > 0 {
			compare(t, string(server)+".txt", strings.TrimPrefix(lines.String(), "\n"))
		}
	}
}

func compare(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(examples, name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("docs/examples/%s is not what config init writes (%v): run go test ./internal/cli/config -update", name, err)
	}
}

// TestLines wants at most 60 lines of at most 100 columns, with everything that the
// flags can add.
func TestLines(t *testing.T) {
	for _, server := range mailservers.Kinds {
		o := exampleFlags(server)
		o.submission = server == mailservers.Postfix || server == mailservers.Exim
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		if _, err := o.parse(); err != nil {
			t.Errorf("%s: %v", server, err)
		}
		for line := range strings.Lines(o.configText()) {
			if len(line) > 100 {
				t.Errorf("%s: a line of %d columns: %s", server, len(line), line)
			}
		}
	}
}

// TestManyDomains wants an error that says what to do where domains do not fit, and no
// earlier.
func TestManyDomains(t *testing.T) {
	lines := func(n int) error {
		o := exampleFlags(mailservers.Postfix)
		o.domains = nil
		for i := range n {
			o.domains = append(o.domains, "customer-"+string(rune('a'+i%26))+string(rune('a'+i/26))+".example")
		}
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		_, err := o.parse()
		return err
	}
	if err := lines(20); err != nil {
		t.Errorf("20 domains: %v", err)
	}
	if err := lines(200); err == nil || !strings.Contains(err.Error(), "--domain file:PATH") {
		t.Errorf("200 domains: %v", err)
	}
}
