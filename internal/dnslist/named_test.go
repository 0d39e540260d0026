package dnslist

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"spamgate/internal/e2e/harness"
)

const namedConf = `options {
	directory "%[1]s";
	listen-on port %[2]s { 127.0.0.1; };
	listen-on-v6 { none; };
	pid-file none;
	session-keyfile none;
	managed-keys-directory "%[1]s";
	recursion yes;
	dnssec-validation no;
	empty-zones-enable no;
	prefetch 0;
};
controls { };
zone "dbl.test" { type forward; forward only; forwarders { %[3]s port %[4]s; }; };
`

// startNamed starts BIND's named as a resolver, which asks the publisher. It ends with the test.
func startNamed(t *testing.T, p *publisher) netip.AddrPort {
	t.Helper()
	program := harness.Program(t, "named", "bind9")
	l, err := net.Listen("tcp", "127.0.0.1:0") // named takes addresses of interfaces only
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(l.Addr().String())
	l.Close()
	dir := t.TempDir()
	conf := filepath.Join(dir, "named.conf")
	harness.WriteFile(t, conf, fmt.Sprintf(namedConf, dir, fmt.Sprint(addr.Port()), p.addr.Addr(), fmt.Sprint(p.addr.Port())))
	cmd := exec.Command(program, "-g", "-n", "1", "-c", conf)
	out := harness.NewOutput(t, "named")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	harness.WaitFor(t, "named to answer", func() bool {
		reply, err := dns.Exchange(new(dns.Msg).SetQuestion("ready.dbl.test.", dns.TypeA), addr.String())
		return err == nil && reply.Rcode == dns.RcodeNameError
	})
	return addr
}

// TestThroughResolver asks as gates do: a resolver with a cache, which asks the publisher. Its
// cache has a name in another case than the questions.
func TestThroughResolver(t *testing.T) {
	p := startPublisher(t, dnsetHead+"spam.example\n:127.0.0.4:"+strings.Repeat("long ", 60)+"\nlong.example\n")
	resolver := startNamed(t, p)
	for range 5 {
		c := p.startWith(resolver)
		for domain, want := range map[string]string{
			"mail.spam.example": "listed spam.example 127.0.0.2 (Listed, see https://dbl.test/?q=spam.example)",
			"long.example":      "listed long.example 127.0.0.4 (" + strings.Repeat("long ", 40)[:199] + ")",
			"good.example":      "not listed",
		} {
			if got := say(c.Message().Result(t.Context(), "dbl", domain)); got != want {
				t.Errorf("%s is %s, want %s", domain, got, want)
			}
		}
		if s := c.Status()[0]; s.State != On || s.Warning != "" {
			t.Errorf("%+v", s)
		}
	}
}
