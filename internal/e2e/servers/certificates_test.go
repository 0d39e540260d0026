package servers

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// makeCertificate has openssl make a certificate for a name, with its number in the subject.
func makeCertificate(t *testing.T, openssl, dir, file, name, number string, newKey ...string) {
	t.Helper()
	args := append([]string{"req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=" + name + "/OU=" + number, "-addext", "subjectAltName=DNS:" + name,
		"-keyout", filepath.Join(dir, file+".key"), "-out", filepath.Join(dir, file+".pem")}, newKey...)
	if _, errs, code := harness.Run(t, exec.Command(openssl, args...)); code != 0 {
		t.Fatal(errs)
	}
}

var (
	ecKey  = []string{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"}
	rsaKey = []string{"-newkey", "rsa:2048"}
)

var subjectNumber = regexp.MustCompile(`(?m)^subject=.*\bOU ?= ?(\w+)`)

// TestCertificates has openssl's client ask a gate with several certificates for names, and
// offer it kinds of keys.
func TestCertificates(t *testing.T) {
	t.Parallel()
	openssl := harness.Program(t, "openssl", "openssl")
	s := harness.Setup{Keys: map[string]string{"listen": `tls = "starttls"
tls_cert = ["ec.pem", "rsa.pem", "other.pem"]
tls_key = ["ec.key", "rsa.key", "other.key"]`}}
	dir := s.Dir(t)
	makeCertificate(t, openssl, dir, "ec", "mx.example.com", "ec1", ecKey...)
	makeCertificate(t, openssl, dir, "rsa", "mx.example.com", "rsa1", rsaKey...)
	makeCertificate(t, openssl, dir, "other", "mx.example.net", "other1", ecKey...)
	g := harness.Serve(t, dir)

	ask := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(openssl, append([]string{"s_client", "-starttls", "smtp", "-connect", g.Addr}, args...)...)
		cmd.Stdin = strings.NewReader("QUIT\r\n")
		out, errs, _ := harness.Run(t, cmd)
		found := subjectNumber.FindStringSubmatch(out)
		if found == nil {
			return "none: " + errs
		}
		return found[1]
	}
	byName := func(name string, more ...string) []string { return append([]string{"-servername", name}, more...) }
	anyName := func(more ...string) []string { return append([]string{"-noservername"}, more...) }
	rsa13, ec13 := []string{"-tls1_3", "-sigalgs", "RSA-PSS+SHA256"}, []string{"-tls1_3", "-sigalgs", "ECDSA+SHA256"}
	rsa12, ec12 := []string{"-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"}, []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{byName("mx.example.com"), "ec1"},
		{byName("mx.example.net"), "other1"},
		{anyName(), "ec1"},
		{byName("unknown.example"), "ec1"},
		{byName("mx.example.com", rsa13...), "rsa1"},
		{byName("mx.example.com", ec13...), "ec1"},
		{byName("mx.example.com", rsa12...), "rsa1"},
		{byName("mx.example.com", ec12...), "ec1"},
		{anyName(rsa13...), "rsa1"},
		{anyName(rsa12...), "rsa1"},
		{byName("unknown.example", rsa12...), "rsa1"},
		{byName("mx.example.net", rsa13...), "rsa1"},
	} {
		if got := ask(c.args...); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}

	// Each pair follows its files; one that breaks stays as it was.
	harness.WriteFile(t, filepath.Join(dir, "rsa.pem"), "nothing\n")
	if line := g.WaitRecord("certificate not loaded, the old one stays"); line.Text("cert") != filepath.Join(dir, "rsa.pem") {
		t.Errorf("%v", line)
	}
	makeCertificate(t, openssl, dir, "new", "mx.example.org", "other2", ecKey...)
	for _, kind := range []string{".pem", ".key"} {
		if err := exec.Command("mv", filepath.Join(dir, "new"+kind), filepath.Join(dir, "other"+kind)).Run(); err != nil {
			t.Fatal(err)
		}
	}
	g.WaitRecord("certificate loaded", "names", "mx.example.org")
	for name, want := range map[string]string{"mx.example.org": "other2", "mx.example.net": "ec1"} {
		if got := ask("-servername", name); got != want {
			t.Errorf("after a change: %s has %s, want %s", name, got, want)
		}
	}
	if got := ask(byName("mx.example.com", rsa13...)...); got != "rsa1" {
		t.Errorf("the broken pair: %s", got)
	}

	// A reload with a broken pair changes nothing and names it. One without it serves the others.
	g.Signal(syscall.SIGHUP)
	why := g.WaitRecord("reload failed, nothing has changed").Text("error")
	if want := fmt.Sprintf("listen.tls_cert: certificate 2 of 3: %s has no certificate", filepath.Join(dir, "rsa.pem")); !strings.Contains(why, want) {
		t.Errorf("%q, want %q", why, want)
	}
	if got := ask(byName("mx.example.com", rsa13...)...); got != "rsa1" {
		t.Errorf("the broken pair after a reload: %s", got)
	}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), strings.NewReplacer(`, "rsa.pem"`, "", `, "rsa.key"`, "").Replace(s.Config()))
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	if got := ask(byName("mx.example.com", rsa13...)...); !strings.HasPrefix(got, "none: ") {
		t.Errorf("without an RSA certificate: %s", got)
	}
	if got := ask("-servername", "mx.example.org"); got != "other2" {
		t.Errorf("after the reload: %s", got)
	}
}
