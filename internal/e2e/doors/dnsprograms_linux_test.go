package doors

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// publisher is a gate that only publishes its lists. Names are for the zone of the domains,
// hash-bl.example.org has the addresses.
const publisher = `[[dns_server]]
name = "dns"
addr = "%s"
zone = "bl.example.org"
hashed_zone = "hash-bl.example.org"
ttl = "1s"
`

// publish starts a gate with a DNS server at an address, such as "127.64.0.1:53".
func publish(t *testing.T, addr string) *harness.Gate {
	t.Helper()
	g := startDoors(t, harness.Setup{
		Listen: harness.NoListener, Tables: fmt.Sprintf(publisher, addr),
		Lists: harness.BlockedLists + "[[list]]\nname = \"good\"\npath = \"good.txt\"\ntype = \"allow\"\n",
		Files: map[string]string{
			"blocked.txt": "spam.example  # bulk mail ## a private note\nphisher@big.example # bulk mail\nfriend@big.example\n",
			"good.txt":    "good.spam.example\nfriend@big.example\nann@spam.example\n",
		},
	})
	doorAddr(g, "dns")
	return g
}

// dnsSenders are the senders of the tests: whether their domain is listed, the address, and
// whether the address is allowed.
var dnsSenders = []struct {
	sender                   string
	domain, address, allowed bool
}{
	{"a@spam.example", true, false, false},
	{"a@SUB.Spam.Example", true, false, false},
	{"a@good.spam.example", false, false, false},
	{"a@clean.example", false, false, false},
	{"phisher@big.example", false, true, false},
	{"Phisher@Big.Example", false, true, false},
	{"friend@big.example", false, false, true},
	{"other@big.example", false, false, false},
	{"ann@spam.example", true, false, true},
	{"Ann@Spam.Example", true, false, true},
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

// compareRCPT sends MAIL and RCPT from each sender. A refusal has the reason. Each reaches
// postmaster (RFC 5321, section 4.5.1). Some servers ask for addresses, too.
func compareRCPT(t *testing.T, addr string, asksHashed bool) {
	t.Helper()
	for _, s := range dnsSenders {
		c := harness.MustDial(t, addr)
		c.Ask("MAIL FROM:<" + s.sender + ">")
		reply, err := c.Ask("RCPT TO:<" + harness.Mailbox + ">")
		if err != nil {
			t.Fatal(err)
		}
		want := s.domain
		if asksHashed {
			want = (s.domain || s.address) && !s.allowed
		}
		if refused := strings.HasPrefix(reply, "5"); refused != want || refused != strings.Contains(reply, "list blocked (bulk mail)") || strings.Contains(reply, "private") {
			t.Errorf("%s: %s", s.sender, reply)
		}
		for _, postmaster := range []string{"postmaster@example.org", "Postmaster@Example.org", "Postmaster"} {
			if reply, err := c.Ask("RCPT TO:<" + postmaster + ">"); err != nil || strings.Contains(reply, "list blocked") {
				t.Errorf("%s to <%s>: %s, %v", s.sender, postmaster, reply, err)
			}
		}
		c.Ask("QUIT")
		c.Close()
	}
}

// TestExampleDNSPostfix tries what "config init --for dns" prints for Postfix.
func TestExampleDNSPostfix(t *testing.T) {
	harness.Program(t, "postfix", "postfix")
	resolver(t)
	e := harness.OpenDoorExample(t, "dns", "--zone", "bl.example.org")
	p := harness.StartPostfix(t, harness.Nowhere, strings.Split(e.Lines(1), "\n")...)
	compareRCPT(t, p.Addr, false)
}

// TestExampleDNSExim tries what it prints for Exim.
func TestExampleDNSExim(t *testing.T) {
	harness.FetchedFile(t, "exim")
	host := resolver(t)
	e := harness.OpenDoorExample(t, "dns", "--zone", "bl.example.org")
	x := harness.StartExim(t, harness.EximOptions{Resolver: host, Rcpt: e.Lines(2) + "\n"})
	compareRCPT(t, x.Addr, true)
}

// rblRules ask in every way that rspamd knows.
const rblRules = `	local_exclude_ip_map = [];
	default_exclude_local = false;
	rbls {
		domain { symbol = "DOMAIN"; rbl = "bl.example.org"; selector = "from('smtp'):domain"; disable_monitoring = true; }
		sha1 { rbl = "hash-bl.example.org"; hash = "sha1"; selector = "from('smtp'):addr.lower"; disable_monitoring = true; returncodes { SHA1 = "127.0.0.2"; SHA1_ALLOWED = "127.0.1.1"; } }
		md5 { rbl = "hash-bl.example.org"; hash = "md5"; replyto = true; disable_monitoring = true; returncodes { MD5 = "127.0.0.2"; MD5_ALLOWED = "127.0.1.1"; } }
		base32 { rbl = "hash-bl.example.org"; hash = "sha1"; hash_format = "base32"; replyto = true; disable_monitoring = true; returncodes { BASE32 = "127.0.0.2"; BASE32_ALLOWED = "127.0.1.1"; } }
	}
`

// TestRspamdRBL has rspamd's module rbl ask for domains and for hashes.
func TestRspamdRBL(t *testing.T) {
	t.Parallel()
	server := harness.FreeAddr(t)
	publish(t, server)
	r := startRspamd(t, server, rblRules, "")
	for _, s := range dnsSenders {
		var want []string
		if s.allowed {
			want = append(want, "BASE32_ALLOWED")
		}
		if s.address {
			want = append(want, "BASE32")
		}
		if s.domain {
			want = append(want, "DOMAIN")
		}
		if s.allowed {
			want = append(want, "MD5_ALLOWED", "SHA1_ALLOWED")
		}
		if s.address {
			want = append(want, "MD5", "SHA1")
		}
		if _, got := r.ask(t, s.sender, "Reply-To: <"+s.sender+">"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", s.sender, got, want)
		}
	}
}
