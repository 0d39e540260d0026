package doors

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// rspamdConf has the module rbl alone.
const rspamdConf = `options {
	pidfile = "%[1]s/rspamd.pid";
	tempdir = "%[1]s";
	control_socket = "%[1]s/control";
	hs_cache_dir = "%[1]s";
	url_tld = "%[1]s/tld"; # a few: it takes seconds to compile all
	filters = "";
	dns { nameserver = ["%[2]s"]; timeout = 5s; }
}
logging { type = "console"; level = "warning"; }
actions { reject = 15; }
lua = "%[1]s/rules.lua";
modules { path = "/usr/share/rspamd/plugins/rbl.lua"; }
rbl {
%[4]s
}
group "rbl" {
%[5]s
}
worker "normal" { bind_socket = "%[3]s"; count = 1; }
`

// TestExampleRspamd tries what "config init --for rspamd" writes: rspamd asks dnsmasq, which
// asks the gate for its zones.
func TestExampleRspamd(t *testing.T) {
	t.Parallel()
	harness.Program(t, "rspamd", "rspamd")
	e := harness.OpenDoorExample(t, "rspamd", "--zone", "bl.example.org")
	g := e.StartDoor()
	resolver := startDnsmasq(t, e.Do[0])
	const allowed = "SPAMGATE_ADDRESS_ALLOWED" // without a score
	r := startRspamd(t, resolver, e.Lines(1), e.Lines(2))
	g.Command(t, 0, "lists", "add", "friend@spam.example", "--list", "allowed-file", "--reason", "we want these")
	for _, test := range []struct{ envelope, from, symbol string }{
		{"a@example.com", "a@example.com", ""},
		{"spammer@example.com", "a@example.com", "SPAMGATE_ADDRESS_REJECT"},
		{"a@example.com", "Spammer@Example.COM", "SPAMGATE_ADDRESS_REJECT"},
		{"x@mail.spam.example", "a@example.com", "SPAMGATE_REJECT"},
		{"a@example.com", "x@spam.example", "SPAMGATE_REJECT"},
		{"x@other.example", "y@other.example", ""},
		{"friend@spam.example", "a@example.com", allowed},
		{"friend@spam.example", "friend@spam.example", allowed},
		{"a@example.com", "Friend@Spam.Example", allowed},
		{"friend@spam.example", "x@spam.example", allowed + " SPAMGATE_REJECT"},
		{"x@spam.example", "friend@spam.example", allowed + " SPAMGATE_REJECT"},
		{"friend@spam.example", "spammer@example.com", allowed + " SPAMGATE_ADDRESS_REJECT"},
	} {
		action, symbols := r.ask(t, test.envelope, "From: <"+test.from+">")
		want := "reject"
		if test.symbol == "" || test.symbol == allowed {
			want = "no action"
		}
		if action != want || strings.Join(symbols, " ") != test.symbol {
			t.Errorf("from <%s>, From: %s: %s %q, want %s %q", test.envelope, test.from, action, symbols, want, test.symbol)
		}
	}
	g.Stop()
	if action, symbols := r.ask(t, "x@never.spam.example", "From: <a@example.com>"); action != "no action" {
		t.Errorf("without a gate: %s %q, want the mail to pass", action, symbols)
	}
}

var dnsmasqServers = regexp.MustCompile(`server=[^ )]+`)

// startDnsmasq starts a dnsmasq with the servers that "config init" names, and returns its
// address. It knows no other names.
func startDnsmasq(t *testing.T, do string) (addr string) {
	t.Helper()
	program := harness.Program(t, "dnsmasq", "dnsmasq-base")
	servers := dnsmasqServers.FindAllString(do, -1)
	if len(servers) == 0 {
		t.Fatalf("no lines for dnsmasq in %q", do)
	}
	addr = harness.FreeAddr(t)
	host, port, _ := net.SplitHostPort(addr)
	// With --no-daemon a connection over TCP, which rspamd opens, would stop all else.
	args := []string{"--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces", "--user=root", "--pid-file=",
		"--listen-address=" + host, "--port=" + port, "--log-facility=-", "--local=/#/"}
	for _, s := range servers {
		args = append(args, "--"+s)
	}
	start(t, "dnsmasq", exec.Command(program, args...))
	harness.WaitFor(t, "dnsmasq to answer", func() bool {
		text, err := askDNS("udp", addr, "test.bl.example.org")
		return err == nil && text == "NOERROR 127.0.0.2"
	})
	return addr
}

// start starts a program, which ends with the test.
func start(t *testing.T, name string, cmd *exec.Cmd) {
	t.Helper()
	out := harness.NewOutput(t, name)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait() // its exit code is no matter
	})
}

// rspamd is the address of a running rspamd.
type rspamd string

// startRspamd starts an rspamd with the rules and scores of the module rbl.
func startRspamd(t *testing.T, resolver, rules, scores string) rspamd {
	t.Helper()
	program := harness.Program(t, "rspamd", "rspamd")
	dir, addr := openDir(t), harness.FreeAddr(t)
	conf := filepath.Join(dir, "rspamd.conf")
	harness.WriteFile(t, filepath.Join(dir, "tld"), "com\norg\nexample\n")
	harness.WriteFile(t, filepath.Join(dir, "rules.lua"), "require \"global_functions\" ()\n")
	harness.WriteFile(t, conf, fmt.Sprintf(rspamdConf, dir, resolver, addr, rules, scores))
	start(t, "rspamd", exec.Command(program, "-f", "-i", "-c", conf))
	harness.WaitFor(t, "rspamd to answer", func() bool {
		answer, err := http.Get("http://" + addr + "/ping")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	return rspamd(addr)
}

// ask returns rspamd's action for a message with that field, and the symbols in order.
func (r rspamd) ask(t *testing.T, envelope, field string) (action string, symbols []string) {
	t.Helper()
	q, err := http.NewRequest("POST", "http://"+string(r)+"/checkv2", strings.NewReader(field+"\r\nSubject: test\r\n\r\ntest\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("From", envelope)
	q.Header.Set("IP", "192.0.2.1")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var result struct {
		Symbols map[string]any `json:"symbols"`
		Action  string         `json:"action"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil || result.Action == "" {
		t.Fatalf("%s: %s, %v", envelope, answer.Status, err)
	}
	return result.Action, slices.Sorted(maps.Keys(result.Symbols))
}

// openDir returns a directory that programs other than root's may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgdoors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
