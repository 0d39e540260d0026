package monitoring

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

const fail2banFilter = "../../../packaging/fail2ban/filter.d/spamgate.conf"

// TestFail2ban has the packaged filter read a real log, in each format, of a file and of
// syslog. It must find those who sent a wrong password, and in the mode aggressive also those
// who reached a limit or tried to relay; and never an address that a client made up.
func TestFail2ban(t *testing.T) {
	t.Parallel()
	program := harness.Program(t, "fail2ban-regex", "fail2ban")
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			log := clientsToBan(t, format)
			for mode, want := range map[string][]string{
				"normal":     {"192.0.2.1", "192.0.2.8", "2001:db8::1", "2001:db8::8"},
				"aggressive": {"192.0.2.1", "192.0.2.5", "192.0.2.6", "192.0.2.8", "2001:db8::1", "2001:db8::8"},
			} {
				for _, prefix := range []string{"", "Nov 22 15:39:26 mx spamgate[77]: "} {
					file := filepath.Join(t.TempDir(), "log")
					harness.WriteFile(t, file, prefix+strings.ReplaceAll(strings.TrimSpace(log), "\n", "\n"+prefix)+"\n")
					stdout, stderr, code := harness.Run(t, exec.Command(program, "--out", "ip", file, fail2banFilter+"[mode="+mode+"]"))
					found := strings.Fields(stdout)
					slices.Sort(found)
					if found = slices.Compact(found); code != 0 || !slices.Equal(found, want) {
						t.Errorf("%s, lines that begin with %q: exit code %d, found %v, want %v\n%s%s", mode, prefix, code, found, want, stderr, log)
					}
				}
			}
		})
	}
}

// clientsToBan returns the log of a gate whose clients have the addresses that a proxy names.
func clientsToBan(t *testing.T, format string) string {
	t.Helper()
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Replies: map[string]string{
		"AUTH PLAIN d3Jvbmc=": "535 5.7.8 Error: authentication failed", "AUTH PLAIN bm90IG5vdw==": "454 4.7.0 Temporary authentication failure"}})
	cert, console := harness.NewCertificate(t, "gate.example"), harness.FreeAddr(t)
	s := harness.Setup{
		Listen: harness.FreeAddr(t), NextHop: "smtp://" + sink.Addr(),
		Tables: "[policy]\nrecipient_domains = [\"example.net\"]\n" + harness.ConsoleTable(console, `url = "https://gate.example"`),
		Keys: map[string]string{
			"listen": fmt.Sprintf("tls = \"starttls\"\ntls_cert = %q\ntls_key = %q\nauth = \"pass\"\ntrusted_proxies = [\"127.0.0.1\"]\nclient_messages_per_minute = 1", cert.Both, cert.Both),
			"log":    `output = "file:gate.log"`,
		},
	}
	dir := s.Dir(t)
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), strings.Replace(s.Config(), `format = "json"`, fmt.Sprintf("format = %q", format), 1))
	harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
	text := func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "gate.log")) // it may not be there yet
		return string(b)
	}
	harness.WaitFor(t, "the gate to listen", func() bool { return strings.Contains(text(), "listening") })
	client := func(addr, helo string) *harness.Client {
		c := harness.MustDial(t, s.Listen).StartTLS(t, cert.Roots, "gate.example")
		c.Want(t, "XCLIENT ADDR="+addr, "220")
		c.Want(t, "EHLO "+helo, "250")
		return c
	}
	harness.WaitFor(t, "AUTH to be offered", func() bool {
		return strings.Contains(client("192.0.2.9", "client.example").Want(t, "EHLO client.example", "250"), "AUTH ")
	})
	const wrong, right, notNow = "AUTH PLAIN d3Jvbmc=", "AUTH PLAIN cmlnaHQ=", "AUTH PLAIN bm90IG5vdw=="
	client("192.0.2.1", "client.example").Want(t, wrong, "535")
	client("IPV6:2001:db8::1", "[IPv6:2001:db8::1]").Want(t, wrong, "535")
	client("192.0.2.2", "client.example").Want(t, right, "235")
	client("192.0.2.3", "client.example").Want(t, notNow, "454")
	mail := client("192.0.2.5", "client.example")
	mail.Want(t, "MAIL FROM:<a@example.com>", "250")
	mail.Want(t, "RSET", "250")
	mail.Want(t, "MAIL FROM:<a@example.com>", "451")
	relay := client("192.0.2.6", "client.example")
	relay.Want(t, "MAIL FROM:<a@example.com>", "250")
	relay.Want(t, "RCPT TO:<b@example.org>", "550")
	// What clients make up: a name and a sender that look like the end of a line.
	forged := client("192.0.2.7", `a"client=198.51.100.1:25"reply="535`)
	forged.Want(t, `MAIL FROM:<"msg=limited client=198.51.100.1:25 of=client "@example.com>`, "250")
	forged.Want(t, "RCPT TO:<b@example.net>", "250")
	forged.Want(t, "DATA", "354")
	forged.Want(t, "\r\n.", "250")
	for _, from := range []string{"192.0.2.8", "2001:db8::8"} {
		guess(t, console, "ann", from)
		guess(t, console, "ann client=198.51.100.1 user=", "198.51.100.1, "+from)
	}
	harness.WaitFor(t, "the last line", func() bool { return strings.Contains(text(), "192.0.2.7") && strings.Contains(text(), "accepted") })
	return text()
}

// guess gives the console a wrong password, as a proxy of this machine does for a client.
func guess(t *testing.T, console, name, from string) {
	t.Helper()
	form := url.Values{"name": {name}, "password": {"a wrong password"}}
	r, err := http.NewRequest(http.MethodPost, "http://"+console+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "gate.example"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", from)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Fatal(response.Status)
	}
}
