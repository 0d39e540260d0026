package e2e

import (
	"strings"
	"testing"
)

// serverHeaders is one way to set up a gate and a server that is no Postfix.
type serverHeaders struct {
	name    string
	start   func(t testing.TB) *tree
	direct  string // line of the PROXY protocol to the server itself, or notDirectly
	nextHop string // keys of the gate's [next_hop]

	rewrites bool // the server completes addresses of strangers
}

// notDirectly is for a server that takes no PROXY header that is a line.
const notDirectly = "not directly"

// eximWith starts an Exim with further lines in its main section.
func eximWith(lines string) func(t testing.TB) *tree {
	return func(t testing.TB) *tree {
		return startExim(t, eximOptions{listen: eximListen + lines})
	}
}

// The documented setups of Exim and OpenSMTPD, and those that their files in
// docs/examples warn of.
var serverHeaderSetups = []serverHeaders{
	{name: "Exim, as documented", direct: proxyIPv4, nextHop: `proxy = "v2"`,
		start: func(t testing.TB) *tree { return startExim(t, eximOptions{proxyFrom: everywhere}) }},
	{name: "Exim without PROXY", nextHop: `identity = "none"`,
		start: func(t testing.TB) *tree { return startExim(t, eximOptions{}) }},
	{name: "Exim with sender_unqualified_hosts", nextHop: `identity = "none"`, rewrites: true,
		start: eximWith("\nsender_unqualified_hosts = *\nrecipient_unqualified_hosts = *")},
	{name: "Exim with a qualify_domain", nextHop: `identity = "none"`, rewrites: true,
		start: eximWith("\nsender_unqualified_hosts = *\nrecipient_unqualified_hosts = *\nqualify_domain = example.org")},
	{name: "OpenSMTPD, as documented", direct: notDirectly, nextHop: `proxy = "v2"`, rewrites: true,
		start: func(t testing.TB) *tree {
			return startOpenSMTPDListen(t, strings.Replace(openSMTPDListen, "hostname", "proxy-v2 hostname", 1))
		}},
	{name: "OpenSMTPD without PROXY", nextHop: `identity = "none"`, rewrites: true, start: startOpenSMTPD},
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
				for _, m := range s.mail("you", sent) {
					if strings.Contains(m, "\nX-Run: "+run+"\n") {
						own = append(own, m)
					}
				}
				return storedHeaders(t, own)
			}
			if c.direct != notDirectly {
				directly := headerSender{addr: s.addr, proxy: c.direct, rcpt: mailbox, run: "direct", hangsUp: true}
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
			g := startGate(t, setup{
				nextHop: "smtp://" + s.addr,
				keys:    map[string]string{"listen": behindProxy, "next_hop": c.nextHop},
				files:   formLists,
				more:    "[policy]\nrecipient_domains = [\"example.org\"]\n",
			})
			through := headerSender{addr: g.addr, proxy: proxyIPv4, rcpt: mailbox, run: "listed"}
			taken := through.send(t, forms)
			if listed := arrivedListed(arrived("listed", taken), forms); len(listed) > 0 {
				t.Errorf("%d forms arrived with a listed sender:\n%s", len(listed), strings.Join(listed, "\n"))
			}
			t.Logf("%d forms passed the gate", taken)
		})
	}
}
