package dnslist

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/e2e/harness"
)

// publisher is an rbldnsd with the zone dbl.test.
type publisher struct {
	*testing.T
	file string
	addr netip.AddrPort
	pid  int
}

// startPublisher starts an rbldnsd with a dnset. It ends with the test.
func startPublisher(t *testing.T, dnset string) *publisher {
	t.Helper()
	dir := t.TempDir()
	os.Chmod(dir, 0o755) // rbldnsd gives up root
	os.Chmod(filepath.Dir(dir), 0o755)
	p := &publisher{T: t, file: filepath.Join(dir, "dnset"), addr: netip.MustParseAddrPort(harness.FreeAddr(t))}
	harness.WriteFile(t, p.file, dnset)
	cmd := harness.RBLDNSD(t, p.addr.String(), "dbl.test:dnset:"+p.file)
	out := harness.NewOutput(t, "rbldnsd")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	p.waitFor("test", true)
	return p
}

// publish replaces the dnset, and waits until a name is in it or not.
func (p *publisher) publish(dnset, name string, listed bool) {
	p.Helper()
	harness.WriteFile(p, p.file, dnset)
	syscall.Kill(p.pid, syscall.SIGHUP)
	p.waitFor(name, listed)
}

func (p *publisher) waitFor(name string, listed bool) {
	p.Helper()
	harness.WaitFor(p, fmt.Sprintf("rbldnsd to have %s: %v", name, listed), func() bool {
		m := new(dns.Msg).SetQuestion(name+".dbl.test.", dns.TypeA)
		reply, err := dns.Exchange(m, p.addr.String())
		return err == nil && (len(reply.Answer) > 0) == listed
	})
}

// start returns a Client with the list, which asks the publisher itself.
func (p *publisher) start() *Client { return p.startWith(p.addr) }

// startWith returns a Client that asks a resolver.
func (p *publisher) startWith(resolver netip.AddrPort) *Client {
	c, err := New(Config{
		Lists: []List{{Name: "dbl", Zone: zone, Timeout: time.Minute}}, Resolvers: []netip.AddrPort{resolver},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(c.Close)
	return c
}

// state waits until the list is in a state.
func (p *publisher) state(c *Client, want State) Status {
	p.Helper()
	harness.WaitFor(p, fmt.Sprintf("the list to be %s", want), func() bool { return c.Status()[0].State == want })
	return c.Status()[0]
}

const dnsetHead = `$TTL 300
$SOA 300 ns.dbl.test hostmaster.dbl.test 1 3600 600 86400 60
$NS 300 ns.dbl.test
:127.0.0.2:Listed, see https://dbl.test/?q=$
test
`

// TestRBLDNSD asks rbldnsd for many domains. The test knows which of them it listed, how
// and with which reason.
func TestRBLDNSD(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dnset := strings.Builder{}
	dnset.WriteString(dnsetHead)
	want := map[string]string{}
	errors := 0
	for i := range 500 {
		domain := fmt.Sprintf("d%d.example", i)
		host := fmt.Sprintf("mail%d.%s", r.IntN(10), domain)
		reason := fmt.Sprintf(" (Listed, see https://dbl.test/?q=%s)", domain)
		kind := r.IntN(5)
		if kind == 3 && errors == breakAfter-1 {
			kind = 4
		}
		switch kind {
		case 0: // the domain alone: its parent is asked for, so that the host counts, too
			fmt.Fprintln(&dnset, domain)
			want[domain] = "listed " + domain + " 127.0.0.2" + reason
			want[host] = want[domain]
		case 1: // with all names below it
			fmt.Fprintln(&dnset, "."+domain)
			want[domain] = "listed " + domain + " 127.0.0.2" + reason
			want[host] = "listed " + host + " 127.0.0.2" + reason
		case 2: // with a value and a reason of its own
			fmt.Fprintf(&dnset, "%s :127.0.1.%d:Phishing\n", host, i%200+2)
			want[domain] = "not listed"
			want[host] = fmt.Sprintf("listed %s 127.0.1.%d (Phishing)", host, i%200+2)
		case 3: // an error; not so many that the list is not asked any more
			errors++
			fmt.Fprintf(&dnset, "%s :127.255.255.254:Go away\n", domain)
			want[domain], want[host] = "unknown: refused", "unknown: refused"
		default:
			want[domain], want[host] = "not listed", "not listed"
		}
	}
	c := startPublisher(t, dnset.String()).start()
	for domain, want := range want {
		m := c.Message()
		if got := say(m.Result(t.Context(), "dbl", domain)); got != want {
			t.Errorf("%s is %s, want %s", domain, got, want)
		}
	}
	if s := c.Status()[0]; s.Counts.Questions == 0 || s.Warning != "" {
		t.Errorf("%+v", s)
	}
}

// TestRBLDNSDMisbehaves: the publisher lists INVALID for a while.
func TestRBLDNSDMisbehaves(t *testing.T) {
	p := startPublisher(t, dnsetHead+"invalid\n.\nspam.example\n")
	c := p.start()
	s := p.state(c, Off)
	if want := `it lists INVALID (127.0.0.2), so it would list every domain: "Listed, see https://dbl.test/?q=invalid"`; s.Reason != want {
		t.Errorf("reason: %s\nwant: %s", s.Reason, want)
	}
	ask := func(want string) {
		t.Helper()
		if got := say(c.Message().Result(t.Context(), "dbl", "spam.example")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	ask("unknown: off")
	p.publish(dnsetHead+"spam.example\n", "invalid", false)
	if err := c.Apply([]List{{Name: "dbl", Zone: zone, Timeout: time.Minute}}, []netip.AddrPort{p.addr}); err != nil {
		t.Fatal(err)
	}
	p.state(c, On)
	ask("listed spam.example 127.0.0.2 (Listed, see https://dbl.test/?q=spam.example)")
}
