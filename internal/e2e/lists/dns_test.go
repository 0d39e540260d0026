package lists

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter/clientname/dnstest"
)

// dnsLists is the configuration of lists in DNS that a server at addr publishes.
func dnsLists(addr, lists string) harness.Setup {
	return harness.Setup{Tables: "[resolver]\naddr = \"" + addr + "\"\n[headers]\ncheck_bounces = true\n",
		Lists: harness.BlockedLists + lists, Files: map[string]string{"blocked.txt": "spam.example  # unsolicited mail\n"}}
}

// published is a zone for rbldnsd. Its test point is test, as RFC 5782 wants.
const published = `$SOA 60 localhost. hostmaster.localhost. 1 60 60 60 60
$NS 60 localhost.
:127.0.1.2:spam domain $
test
listed.example
.whole.example.co.uk :127.0.1.4:phishing below $
other.example :127.0.0.9:not for us
`

// TestListInDNS asks rbldnsd.
func TestListInDNS(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sgdns") // t.TempDir is for root alone, and rbldnsd is not root
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	harness.WriteFile(t, filepath.Join(dir, "zone"), published)
	addr := harness.FreeAddr(t)
	cmd := harness.RBLDNSD(t, addr, "dbl.test:dnset:"+filepath.Join(dir, "zone"))
	output := harness.NewOutput(t, "rbldnsd")
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	output.Wait("rbldnsd to start", func(line string) bool { return strings.Contains(line, "started") })

	setup := dnsLists(addr, `
[[list]]
name = "allowed"
path = "allowed.txt"
type = "allow"
[[list]]
name = "dbl"
dns_zone = "dbl.test"
dns_codes = ["127.0.1.2-127.0.1.99"]
dns_timeout = "10s"
`)
	setup.Files["allowed.txt"] = "friend@listed.example\n"
	g := harness.StartGate(t, setup)
	c := harness.MustDial(t, g.Addr)
	for sender, want := range map[string]string{
		"a@listed.example":                 "spam domain listed.example",
		"a@sub.listed.example":             "spam domain listed.example", // its parent
		"a@deep.below.whole.example.co.uk": "phishing below whole.example.co.uk",
		"a@other.example":                  "", // a code that does not count
		"a@clean.example":                  "",
		"friend@listed.example":            "",
		"":                                 "",
		"a@[192.0.2.1]":                    "",
		"a@gmail.com":                      "", // protected
		"someone%listed.example@elsewhere.example": "", // a guess
	} {
		reply, err := c.Verdict(sender, "user@example.com")
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if !strings.HasPrefix(reply, "250 ") {
				t.Errorf("%s: %s", sender, reply)
			}
			continue
		}
		harness.WantRefusal(t, reply, sender, "dbl", want)
	}
	reply, err := c.Send("a@clean.example", "user@example.com", []byte("From: b@sub.listed.example\r\nSubject: x\r\n\r\nx\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	harness.WantRefusal(t, reply, "b@sub.listed.example", "dbl", "spam domain listed.example")
	r := g.WaitRecord("refused", "identity", "From")
	if r.Text("source") != "dns:dbl.test" || r.Text("entry") != "listed.example" || r.Text("note") != "127.0.1.2" {
		t.Errorf("the log says %v", r)
	}
	if text := g.Command(t, 1, "check", "a@sub.listed.example"); !strings.Contains(text, "listed: listed.example, 127.0.1.2") {
		t.Errorf("check says %s", text)
	}
	if text := g.Command(t, 0, "check", "--offline", "a@sub.listed.example"); !strings.Contains(text, "not asked 1 list in DNS") {
		t.Errorf("check --offline says %s", text)
	}
}

// lists that a dnstest.Server publishes: one whose missing answers defer mail, one whose
// do not.
const twoLists = `
[[list]]
name = "dbl"
dns_zone = "dbl.test"
dns_timeout = "2s"
dns_on_error = "defer"
stage = ["envelope"]
[[list]]
name = "uri"
dns_zone = "uri.test"
dns_timeout = "2s"
stage = ["header"]
`

// publish starts a server whose zones list bad.example and their test points.
func publish(t *testing.T) *dnstest.Server {
	s := dnstest.New(t, "127.0.0.1:0")
	for _, zone := range []string{"dbl.test", "uri.test"} {
		s.AddAddr("test."+zone, "127.0.0.2", 60)
		s.AddAddr("bad.example."+zone, "127.0.0.2", 60)
		s.AddText("bad.example."+zone, "listed by "+zone, 60)
	}
	return s
}

// TestListInDNSStalls: mail waits no longer than dns_timeout, and then passes or is deferred. A
// reload and a stop do not wait for answers.
func TestListInDNSStalls(t *testing.T) {
	t.Parallel()
	server := publish(t)
	g := harness.StartGate(t, dnsLists(server.Addr(), twoLists))
	c := harness.MustDial(t, g.Addr)
	reply, err := c.Verdict("a@bad.example", "user@example.com")
	if err != nil {
		t.Fatal(err)
	}
	harness.WantRefusal(t, reply, "a@bad.example", "dbl", "listed by dbl.test")
	never := make(chan struct{})
	defer close(never)
	server.Behave(dnstest.Behavior{Hold: never})
	c.Want(t, "RSET", "250")
	c.Want(t, "MAIL FROM:<a@new.example>", "250")
	reply = c.Want(t, "RCPT TO:<user@example.com>", "451 4.7.1 <a@new.example> refused: list dbl (the list does not answer now, try again later)")
	if r := g.WaitRecord("refused", "entry", "new.example"); r.Text("action") != "defer" || r.Text("note") != "timeout" || r.Text("list") != "dbl" {
		t.Errorf("%s; the log says %v", reply, r)
	}
	c.Want(t, "RSET", "250")
	if reply := c.MustSend(t, "", "user@example.com", "From: b@newer.example\r\nSubject: x\r\n\r\nx\r\n"); !strings.HasPrefix(reply, "250 ") {
		t.Errorf("the bounce: %s", reply)
	}
	families := harness.ReadMetrics(t, g.SocketClient(), "http://spamgate/metrics")
	if n := harness.MetricValue(t, families, "spamgate_dns_list_unknown_total", "list", "dbl", "cause", "timeout"); n != 1 {
		t.Errorf("%v timeouts are counted", n)
	}
	if n := harness.MetricValue(t, families, "spamgate_dns_list_answers_total", "list", "dbl", "result", "listed"); n != 1 {
		t.Errorf("%v listed domains are counted", n)
	}
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	g.Stop()
}

// TestListInDNSReloadFails: after a reload that fails, the lists in DNS are asked as before.
func TestListInDNSReloadFails(t *testing.T) {
	t.Parallel()
	server := publish(t)
	setup := dnsLists(server.Addr(), twoLists)
	g := harness.StartGate(t, setup)
	setup.Lists = harness.BlockedLists + "[[list]]\nname = \"missing\"\npath = \"missing.txt\"\n"
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), setup.Config())
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reload failed, nothing has changed")
	reply, err := harness.MustDial(t, g.Addr).Verdict("a@bad.example", "user@example.com")
	if err != nil {
		t.Fatal(err)
	}
	harness.WantRefusal(t, reply, "a@bad.example", "dbl", "listed by dbl.test")
}

// TestListInDNSLies: a zone that lists INVALID is switched off and named, and is asked again
// once it behaves.
func TestListInDNSLies(t *testing.T) {
	t.Parallel()
	server := publish(t)
	server.AddAddr("invalid.dbl.test", "127.0.0.2", 60)
	g := harness.StartGate(t, dnsLists(server.Addr(), twoLists))
	g.WaitRecord("a DNS list is switched off until it passes its check", "list", "dbl")
	c := harness.MustDial(t, g.Addr)
	if reply, err := c.Verdict("a@bad.example", "user@example.com"); err != nil || !strings.HasPrefix(reply, "250 ") {
		t.Errorf("%s, %v", reply, err)
	}
	state := func(name string) float64 {
		families := harness.ReadMetrics(t, g.SocketClient(), "http://spamgate/metrics")
		return harness.MetricValue(t, families, "spamgate_dns_list_state", "list", "dbl", "state", name)
	}
	if state("off") != 1 || state("on") != 0 {
		t.Error("the metrics do not say that the list is off")
	}
	if text := g.Lists(t, 0, "status"); !strings.Contains(text, "OFF since") {
		t.Errorf("lists status says %s", text)
	}
	if text := g.Command(t, 1, "health"); !strings.Contains(text, "list dbl: switched off: ") {
		t.Errorf("health says %s", text)
	}
	g.Signal(syscall.SIGUSR1)
	g.WaitRecord("list in DNS is not asked", "list", "dbl", "state", "off")

	server.Clear()
	for _, zone := range []string{"dbl.test", "uri.test"} {
		server.AddAddr("test."+zone, "127.0.0.2", 60)
		server.AddAddr("bad.example."+zone, "127.0.0.2", 60)
	}
	g.Signal(syscall.SIGHUP) // checks at once what is switched off
	g.WaitRecord("a DNS list is asked again", "list", "dbl")
	reply, err := c.Verdict("a@bad.example", "user@example.com")
	if err != nil || !strings.HasPrefix(reply, "550 5.7.1 <a@bad.example> refused: list dbl;") {
		t.Errorf("%s, %v", reply, err)
	}
	if state("on") != 1 {
		t.Error("the metrics do not say that the list is on again")
	}
}
