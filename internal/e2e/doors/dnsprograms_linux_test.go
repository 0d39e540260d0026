package doors

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// publisher is a gate that only publishes its lists. Names are for the zone of the domains,
// hash.example.org has the addresses.
const publisher = `[[dns_server]]
name = "dns"
addr = "%s"
zone = "bl.example.org"
hashed_zone = "hash.example.org"
ttl = "1s"
`

// publish starts a gate with a DNS server at an address, such as "127.64.0.1:53".
func publish(t *testing.T, addr string) *harness.Gate {
	t.Helper()
	g := startDoors(t, harness.Setup{
		Listen: harness.NoListener, Tables: fmt.Sprintf(publisher, addr),
		Lists: harness.BlockedLists + "[[list]]\nname = \"good\"\npath = \"good.txt\"\ntype = \"allow\"\n",
		Files: map[string]string{
			"blocked.txt": "spam.example  # bulk mail ## a private note\nphisher@big.example\nfriend@big.example\n",
			"good.txt":    "good.spam.example\nfriend@big.example\n",
		},
	})
	doorAddr(g, "dns")
	return g
}

// dnsSenders are the senders of the tests: whether their domain is listed, and the address.
var dnsSenders = []struct {
	sender          string
	domain, address bool
}{
	{"a@spam.example", true, false},
	{"a@SUB.Spam.Example", true, false},
	{"a@good.spam.example", false, false},
	{"a@clean.example", false, false},
	{"phisher@big.example", false, true},
	{"Phisher@Big.Example", false, true},
	{"friend@big.example", false, false},
	{"other@big.example", false, false},
}

// resolver gives the test, and the programs that it starts, a DNS server of their own, and
// returns its address. It needs root.
func resolver(t *testing.T) (host string) {
	t.Helper()
	harness.PrivateMounts(t)
	host, _, _ = net.SplitHostPort(harness.FreeAddr(t))
	file := filepath.Join(t.TempDir(), "resolv.conf")
	harness.WriteFile(t, file, "nameserver "+host+"\noptions timeout:2 attempts:5\n")
	if err := unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	publish(t, net.JoinHostPort(host, "53"))
	return host
}

// compareRCPT sends MAIL and RCPT from each sender. A refusal has the reason.
func compareRCPT(t *testing.T, addr string) {
	t.Helper()
	for _, s := range dnsSenders {
		c := harness.MustDial(t, addr)
		c.Ask("MAIL FROM:<" + s.sender + ">")
		reply, err := c.Ask("RCPT TO:<" + harness.Mailbox + ">")
		if err != nil {
			t.Fatal(err)
		}
		if refused := strings.HasPrefix(reply, "5"); refused != s.domain || refused != strings.Contains(reply, "list blocked (bulk mail)") || strings.Contains(reply, "private") {
			t.Errorf("%s: %s", s.sender, reply)
		}
		c.Ask("QUIT")
		c.Close()
	}
}

// TestPostfixRHSBL has Postfix ask with reject_rhsbl_sender.
func TestPostfixRHSBL(t *testing.T) {
	harness.Program(t, "postfix", "postfix")
	resolver(t)
	p := harness.StartPostfix(t, harness.Nowhere, "smtpd_recipient_restrictions = reject_rhsbl_sender bl.example.org=127.0.0.[2..3]")
	compareRCPT(t, p.Addr)
}

// TestEximRHSBL has Exim ask with dnslists.
func TestEximRHSBL(t *testing.T) {
	harness.FetchedFile(t, "exim")
	host := resolver(t)
	e := harness.StartExim(t, harness.EximOptions{
		Resolver: host,
		Rcpt:     "  deny dnslists = bl.example.org/$sender_address_domain\n       message = refused: $dnslist_text\n",
	})
	compareRCPT(t, e.Addr)
}

// rspamdConf has the module rbl alone.
const rspamdConf = `options {
	pidfile = "%[1]s/rspamd.pid";
	tempdir = "%[1]s";
	control_socket = "%[1]s/control";
	hs_cache_dir = "%[1]s";
	url_tld = "/usr/share/rspamd/effective_tld_names.dat";
	filters = "";
	dns { nameserver = ["%[3]s"]; timeout = 10s; }
}
logging { type = "console"; level = "warning"; }
actions { reject = 15; }
lua = "%[1]s/rules.lua";
modules { path = "/usr/share/rspamd/plugins/rbl.lua"; }
rbl {
	local_exclude_ip_map = [];
	default_exclude_local = false;
	rbls {
		domain { symbol = "DOMAIN"; rbl = "bl.example.org"; selector = "from('smtp'):domain"; disable_monitoring = true; }
		sha1 { symbol = "SHA1"; rbl = "hash.example.org"; hash = "sha1"; selector = "from('smtp'):addr.lower"; disable_monitoring = true; }
		md5 { symbol = "MD5"; rbl = "hash.example.org"; hash = "md5"; replyto = true; disable_monitoring = true; }
		base32 { symbol = "BASE32"; rbl = "hash.example.org"; hash = "sha1"; hash_format = "base32"; replyto = true; disable_monitoring = true; }
	}
}
worker "normal" { bind_socket = "%[2]s"; count = 1; }
`

// TestRspamdRBL has rspamd's module rbl ask for domains and for hashes.
func TestRspamdRBL(t *testing.T) {
	t.Parallel()
	program := harness.Program(t, "rspamd", "rspamd")
	server, addr, dir := harness.FreeAddr(t), harness.FreeAddr(t), openDir(t)
	publish(t, server)
	harness.WriteFile(t, filepath.Join(dir, "rules.lua"), "require \"global_functions\" ()\n")
	conf := filepath.Join(dir, "rspamd.conf")
	harness.WriteFile(t, conf, fmt.Sprintf(rspamdConf, dir, addr, server))
	cmd := exec.Command(program, "-f", "-i", "-c", conf)
	cmd.Stdout = harness.NewOutput(t, "rspamd")
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // its workers end with it
		cmd.Wait()
	})
	client := &http.Client{Timeout: harness.WorkTimeout}
	harness.WaitFor(t, "rspamd to answer", func() bool {
		answer, err := client.Get("http://" + addr + "/ping")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	for _, s := range dnsSenders {
		var want []string
		if s.domain {
			want = append(want, "DOMAIN")
		}
		if s.address {
			want = append(want, "BASE32", "MD5", "SHA1")
		}
		if got := rspamdSymbols(t, client, addr, s.sender); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", s.sender, got, want)
		}
	}
}

// rspamdSymbols returns the symbols of a message from a sender, in order.
func rspamdSymbols(t *testing.T, client *http.Client, addr, sender string) []string {
	t.Helper()
	r, err := http.NewRequest("POST", "http://"+addr+"/checkv2", strings.NewReader("Reply-To: <"+sender+">\nSubject: test\n\ntest\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("From", sender)
	r.Header.Set("IP", "192.0.2.1")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var result struct{ Symbols map[string]any }
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range result.Symbols {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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
