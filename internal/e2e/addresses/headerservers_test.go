package addresses

import (
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// serverHeaders is a setup of a gate and of a server other than Postfix.
type serverHeaders struct {
	name    string
	start   func(t testing.TB) *harness.ChrootServer
	direct  string // PROXY header for the server itself, or noDirectRun
	nextHop string // keys of the gate's [next_hop]

	rewrites bool // the server completes addresses of other machines
}

// noDirectRun stands for a server that takes no PROXY header of version 1.
const noDirectRun = "not directly"

// eximWith returns a function that starts an Exim with more lines in its main section.
func eximWith(lines string) func(t testing.TB) *harness.ChrootServer {
	return func(t testing.TB) *harness.ChrootServer {
		return harness.StartExim(t, harness.EximOptions{Listen: harness.EximListen + lines})
	}
}

// serverHeaderSetups are the documented setups of Exim and OpenSMTPD, and those that
// docs/next-hop.md warns of.
var serverHeaderSetups = []serverHeaders{
	{name: "Exim, as documented", direct: proxyIPv4, nextHop: `proxy = "v2"`,
		start: func(t testing.TB) *harness.ChrootServer {
			return harness.StartExim(t, harness.EximOptions{ProxyFrom: harness.Everywhere})
		}},
	{name: "Exim without PROXY", nextHop: `identity = "none"`,
		start: func(t testing.TB) *harness.ChrootServer { return harness.StartExim(t, harness.EximOptions{}) }},
	{name: "Exim with sender_unqualified_hosts", nextHop: `identity = "none"`, rewrites: true,
		start: eximWith("\nsender_unqualified_hosts = *\nrecipient_unqualified_hosts = *")},
	{name: "Exim with a qualify_domain", nextHop: `identity = "none"`, rewrites: true,
		start: eximWith("\nsender_unqualified_hosts = *\nrecipient_unqualified_hosts = *\nqualify_domain = example.org")},
	{name: "OpenSMTPD, as documented", direct: noDirectRun, nextHop: `proxy = "v2"`, rewrites: true,
		start: func(t testing.TB) *harness.ChrootServer {
			return harness.StartOpenSMTPDListen(t, strings.Replace(harness.OpenSMTPDListen, "hostname", "proxy-v2 hostname", 1))
		}},
	{name: "OpenSMTPD without PROXY", nextHop: `identity = "none"`, rewrites: true, start: harness.StartOpenSMTPD},
}

// TestRewrittenHeadersOfServers is TestRewrittenHeaders with Exim and OpenSMTPD.
func TestRewrittenHeadersOfServers(t *testing.T) {
	t.Parallel()
	forms := rewrittenForms(t)
	for _, c := range serverHeaderSetups {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			sent := 0
			arrived := func(run string, taken int) map[int][]string {
				sent += taken
				var own []string
				for _, m := range s.Mail("you", sent) {
					if strings.Contains(m, "\nX-Run: "+run+"\n") {
						own = append(own, m)
					}
				}
				return storedHeaders(t, own)
			}
			if c.direct != noDirectRun {
				directly := headerSender{addr: s.Addr, proxy: c.direct, rcpt: harness.Mailbox, run: "direct", hangsUp: true}
				stored := arrived("direct", directly.send(t, forms))
				listed := arrivedListed(stored, forms)
				t.Logf("directly: %d of %d forms arrived with a listed sender", len(listed), len(forms))
				if c.rewrites && len(listed) < len(forms)/5 {
					t.Error("the test does not test much")
				}
				if changed := arrivedChanged(stored, forms); !c.rewrites && len(changed) > 0 {
					t.Errorf("the server changed %d forms:\n%s", len(changed), strings.Join(changed, "\n"))
				}
			}
			g := harness.StartGate(t, harness.Setup{
				NextHop: "smtp://" + s.Addr,
				Keys:    map[string]string{"listen": harness.AcceptProxy, "next_hop": c.nextHop},
				Files:   formLists,
				Tables:  "[policy]\nrecipient_domains = [\"example.org\"]\n",
			})
			through := headerSender{addr: g.Addr, proxy: proxyIPv4, rcpt: harness.Mailbox, run: "listed"}
			taken := through.send(t, forms)
			if listed := arrivedListed(arrived("listed", taken), forms); len(listed) > 0 {
				t.Errorf("%d forms arrived with a listed sender:\n%s", len(listed), strings.Join(listed, "\n"))
			}
			t.Logf("%d forms passed the gate", taken)
		})
	}
}
