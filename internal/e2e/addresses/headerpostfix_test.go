package addresses

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// PROXY headers of clients that no server here trusts.
const (
	proxyIPv4 = "PROXY TCP4 " + stranger + " 127.0.0.1 4711 25\r\n"
	proxyIPv6 = "PROXY TCP6 2001:db8::7 2001:db8::1 4711 25\r\n"
)

// Options of services in master.cf.
const (
	takesXCLIENT  = "\n  -o smtpd_authorized_xclient_hosts=127.0.0.1"
	takesXFORWARD = "\n  -o smtpd_authorized_xforward_hosts=127.0.0.1"
	noXFORWARD    = "\n  -o smtpd_authorized_xforward_hosts="
	noRewriting   = "\n  -o local_header_rewrite_clients="
	takesPROXY    = "\n  -o smtpd_upstream_proxy_protocol=haproxy"
)

// A headerSetup is a setup of a gate and a service of Postfix.
type headerSetup struct {
	name     string
	options  string // options of the service
	nextHop  string // keys of the gate's [next_hop]
	client   string // PROXY header for the gate
	rewrites bool   // Postfix rewrites headers, so only the gate stops listed senders
	warns    bool   // the gate warns that it cannot tell Postfix about clients
}

var headerSetups = []headerSetup{
	{name: "XCLIENT, with the line", options: takesXCLIENT + takesXFORWARD + noRewriting, nextHop: `identity = "xclient"`, client: proxyIPv4},
	{name: "XCLIENT, without the line", options: takesXCLIENT + takesXFORWARD, nextHop: `identity = "xclient"`, client: proxyIPv4},
	{name: "XCLIENT alone, with the line", options: takesXCLIENT + noXFORWARD + noRewriting, nextHop: `identity = "xclient"`, client: proxyIPv4, warns: true},
	{name: "XCLIENT alone, without the line", options: takesXCLIENT + noXFORWARD, nextHop: `identity = "xclient"`, client: proxyIPv4, rewrites: true, warns: true},
	{name: "XFORWARD, with the line", options: takesXFORWARD + noRewriting, nextHop: `identity = "xforward"`, client: proxyIPv4},
	{name: "XFORWARD, without the line", options: takesXFORWARD, nextHop: `identity = "xforward"`, client: proxyIPv4},
	{name: "XFORWARD and IPv6, without the line", options: takesXFORWARD, nextHop: `identity = "xforward"`, client: proxyIPv6},
	{name: "auto, with the line", options: takesXCLIENT + takesXFORWARD + noRewriting, nextHop: `identity = "auto"`, client: proxyIPv4},
	{name: "auto, without the line", options: takesXCLIENT + takesXFORWARD, nextHop: `identity = "auto"`, client: proxyIPv4},
	{name: "auto and nothing offered, with the line", options: noXFORWARD + noRewriting, nextHop: `identity = "auto"`, client: proxyIPv4, warns: true},
	{name: "auto and nothing offered, without the line", options: noXFORWARD, nextHop: `identity = "auto"`, client: proxyIPv4, rewrites: true, warns: true},
	{name: "none, with the line", options: noXFORWARD + noRewriting, nextHop: `identity = "none"`, client: proxyIPv4, warns: true},
	{name: "none and XFORWARD offered, without the line", options: takesXFORWARD, nextHop: `identity = "none"`, client: proxyIPv4},
	{name: "none, without the line", options: noXFORWARD, nextHop: `identity = "none"`, client: proxyIPv4, rewrites: true, warns: true},
	{name: "PROXY, without the line", options: noXFORWARD + takesPROXY, nextHop: `proxy = "v2"`, client: proxyIPv4},
}

// A headerPostfix is a Postfix with several services, each with its own options. For n
// services it has 2n mailboxes, from s0@example.org on.
type headerPostfix struct {
	*harness.Postfix
	addrs []string
}

// startHeaderPostfix starts a Postfix with services and more parameters.
func startHeaderPostfix(t testing.TB, options []string, services string, more ...string) headerPostfix {
	t.Helper()
	master := harness.PostfixSmtpd + noXFORWARD
	var addrs []string
	var boxes strings.Builder
	for i, o := range options {
		addrs = append(addrs, harness.FreeAddr(t))
		master += "\n" + addrs[i] + " inet n - n - - smtpd" + o
	}
	for i := range 2*len(options) + 1 {
		fmt.Fprintf(&boxes, " s%d@example.org=s%d/,", i, i)
	}
	more = append(more, "virtual_mailbox_maps = inline:{"+strings.TrimSuffix(boxes.String(), ",")+" }", "header_checks =")
	return headerPostfix{harness.StartPostfixService(t, master+services, harness.Everywhere, more...), addrs}
}

// direct sends the forms to Postfix as a program of its machine would, without a gate,
// and returns those that arrive with a listed sender.
func (p headerPostfix) direct(t *testing.T, forms []string, box int) []string {
	t.Helper()
	user := fmt.Sprint("s", box)
	taken := headerSender{addr: p.Addr, rcpt: user + "@example.org"}.send(t, forms)
	listed := arrivedListed(storedHeaders(t, p.MailOf(user, taken)), forms)
	t.Logf("directly: %d of %d forms arrived with a listed sender", len(listed), len(forms))
	return listed
}

// TestRewrittenHeaders sends every form to Postfix as a program of its machine would,
// and through a gate in each setup. Directly, many arrive with a listed sender; through
// a gate, none. If rewriting is switched off, Postfix changes no form that passes the
// gate.
func TestRewrittenHeaders(t *testing.T) {
	t.Parallel()
	forms := rewrittenForms(t)
	_, documented, _ := strings.Cut(harness.OpenExample(t, "postfix").Lines(0), " smtpd\n")
	setups := append(slices.Clone(headerSetups), headerSetup{
		name: "config init", options: "\n" + documented, nextHop: `identity = "xclient"`, client: proxyIPv4,
	})
	var options []string
	for _, s := range setups {
		options = append(options, s.options)
	}
	p := startHeaderPostfix(t, options, "")
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		if n := len(p.direct(t, forms, 2*len(options))); n < len(forms)/2 {
			t.Errorf("%d of %d forms arrived with a listed sender: the test does not test much", n, len(forms))
		}
	})
	for i, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			t.Run("unlisted", func(t *testing.T) { wantRewriting(t, p, i, s, forms) })
			t.Run("listed", func(t *testing.T) { wantNoListed(t, p, i, s, forms) })
		})
	}
}

// TestRewrittenHeadersRemoteDomain has a Postfix with remote_header_rewrite_domain,
// which rewrites whatever the gate tells it and master.cf says. A cleanup service for
// the gate's mail alone leaves the headers unchanged.
func TestRewrittenHeadersRemoteDomain(t *testing.T) {
	t.Parallel()
	forms := rewrittenForms(t)
	readme := takesXCLIENT + takesXFORWARD + noRewriting
	setups := []headerSetup{
		{name: "README's lines", options: readme, nextHop: `identity = "xclient"`, client: proxyIPv4, rewrites: true},
		{name: "its own cleanup", options: readme + "\n  -o cleanup_service_name=cleanup-gate", nextHop: `identity = "xclient"`, client: proxyIPv4},
	}
	p := startHeaderPostfix(t, []string{setups[0].options, setups[1].options},
		"\ncleanup-gate unix n - n - 0 cleanup\n  -o remote_header_rewrite_domain=",
		"remote_header_rewrite_domain = domain.invalid")
	for i, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			t.Run("unlisted", func(t *testing.T) { wantRewriting(t, p, i, s, forms) })
			t.Run("listed", func(t *testing.T) { wantNoListed(t, p, i, s, forms) })
		})
	}
}

// startHeaderGate starts a gate before a service.
func (s headerSetup) startHeaderGate(t testing.TB, addr string, files map[string]string) *harness.Gate {
	t.Helper()
	return harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + addr,
		Keys:    map[string]string{"listen": harness.AcceptProxy, "next_hop": s.nextHop},
		Files:   files,
		Tables:  "[policy]\nrecipient_domains = [\"example.org\"]\n",
	})
}

// wantRewriting sends the forms through a gate that lists none of their senders, and
// checks that Postfix changes no header, or many.
func wantRewriting(t *testing.T, p headerPostfix, i int, s headerSetup, forms []string) {
	g := s.startHeaderGate(t, p.addrs[i], map[string]string{"blocked.txt": "nobody.invalid\n"})
	user := fmt.Sprint("s", 2*i)
	taken := headerSender{addr: g.Addr, proxy: s.client, rcpt: user + "@example.org"}.send(t, forms)
	if short := shortForms(forms); taken < short-10 || taken > short {
		t.Errorf("%d of %d forms that are not too long were taken by a gate that lists none of their senders", taken, short)
	}
	stored := storedHeaders(t, p.MailOf(user, taken))
	changed := arrivedChanged(stored, forms)
	switch {
	case s.rewrites && len(changed) < len(forms)/2:
		t.Errorf("Postfix changed %d forms: the setup tests nothing", len(changed))
	case !s.rewrites && len(changed) > 0:
		t.Errorf("Postfix changed %d forms:\n%s", len(changed), strings.Join(changed, "\n"))
	}
	if got := warned(g, "cannot be told that mail comes from other machines"); len(got) != 0 && !s.warns || len(got) != 1 && s.warns {
		t.Errorf("%d lines about SOURCE after %d messages: %q", len(got), taken, got)
	}
	// A Postfix with inet_protocols = ipv4 refuses IPv6 addresses.
	refused := 0
	if s.client == proxyIPv6 {
		refused = 1
	}
	if got := warned(g, "next hop refused XFORWARD"); len(got) != refused {
		t.Errorf("%d lines about refused attributes, want %d: %q", len(got), refused, got)
	}
	t.Logf("%d forms arrived, %d changed", len(stored), len(changed))
}

// wantNoListed sends the forms through a gate with lists, and checks that none arrives
// with a listed sender.
func wantNoListed(t *testing.T, p headerPostfix, i int, s headerSetup, forms []string) {
	g := s.startHeaderGate(t, p.addrs[i], formLists)
	user := fmt.Sprint("s", 2*i+1)
	taken := headerSender{addr: g.Addr, proxy: s.client, rcpt: user + "@example.org"}.send(t, forms)
	stored := storedHeaders(t, p.MailOf(user, taken))
	listed := arrivedListed(stored, forms)
	if len(listed) > 0 {
		t.Errorf("%d forms arrived with a listed sender:\n%s", len(listed), strings.Join(listed, "\n"))
	}
	t.Logf("%d forms passed, %d of them with a listed sender: %s", taken, len(listed), passedForms(stored, forms))
}

// warned returns the warnings in the log that contain a text.
func warned(g *harness.Gate, text string) []string {
	var found []string
	for line := range strings.Lines(g.Log.String()) {
		if strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
