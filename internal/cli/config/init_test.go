package config

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

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

// tomlBlocks are the examples of a page.
var tomlBlocks = regexp.MustCompile("(?ms)^```toml\n(.*?)^```")

// TestSubmissionPage wants the listeners of --submission to have the keys and values that
// docs/listeners.md recommends for their ports, in all its examples together, and no others.
func TestSubmissionPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/listeners.md")
	if err != nil {
		t.Fatal(err)
	}
	listeners := func(text string) (all []map[string]any) {
		var file struct{ Listener []map[string]any }
		if err := toml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		return file.Listener
	}
	recommended := map[any]map[string]any{} // by addr
	for _, block := range tomlBlocks.FindAllStringSubmatch(string(page), -1) {
		for _, l := range listeners(block[1]) {
			known := recommended[l["addr"]]
			if known == nil {
				known = map[string]any{}
				recommended[l["addr"]] = known
			}
			for key, value := range l {
				if before, twice := known[key]; twice && before != value {
					t.Errorf("the page has %s = %v and %v for %v", key, before, value, l["addr"])
				}
			}
			maps.Copy(known, l)
		}
	}
	o := exampleFlags(mailservers.Postfix)
	o.submission = true
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	written := map[any]map[string]any{}
	for _, l := range listeners(o.configText()) {
		if l["auth"] != "require" {
			t.Errorf("%v takes mail without a login: auth = %v", l["addr"], l["auth"])
		}
		written[l["addr"]] = l
	}
	if len(written) != 2 || !reflect.DeepEqual(written, recommended) {
		t.Errorf("config init --submission writes\n%v\nand docs/listeners.md has\n%v", written, recommended)
	}
}

// TestLines wants at most 60 lines, or 80 with --submission, of at most 100 columns, with
// everything that the flags can add.
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
