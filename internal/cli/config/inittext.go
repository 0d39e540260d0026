package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"spamgate/internal/mailservers"
)

// initLists are the lists of a new configuration, with what a file that is made for one
// says.
var initLists = []struct{ name, file, settings, about string }{
	{"always-allow", "lists/always-allow.txt", "type = \"allow\"\noverride = true\n", "Senders whose mail always passes, whatever the other lists say."},
	{"allowed", "lists/allowed.txt", "type = \"allow\"\n", "Senders who are exceptions from less specific entries of block lists."},
	{"blocked", "lists/blocked.txt", "", "Senders whose mail is refused."},
}

// configText returns a configuration.
func (o *initOptions) configText() string {
	if o.server.Asks() {
		return o.doorText()
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# spamgate before %s, written by "config init --for %s".
# All keys: spamgate.toml(5). After a change: spamgate config check --config FILE

# The gate's own name, which it greets with.
hostname = %q

[listen]
addr = %q%s
`, o.beforeWhat(), o.server, o.hostname, o.listen, listenComment(o.listen))
	b.WriteString(o.tlsText())
	if o.submission {
		b.WriteString(`
# Ports where mail programs log in. Their mail is not checked.
[[listener]]
name = "submissions"
addr = ":465"
tls = "implicit"
auth = "pass"
exempt_authenticated = true

[[listener]]
name = "submission"
addr = ":587"
tls = "required"
auth = "pass"
exempt_authenticated = true
`)
	}
	fmt.Fprintf(&b, "\n[next_hop]\naddr = %q\n%s", o.nextHop, o.nextHopText())
	b.WriteString(o.policyText())
	b.WriteString(o.stateText())
	return b.String()
}

// stateText returns the state directory and the lists.
func (o *initOptions) stateText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[state]\n# Indexes of the lists, their history, the audit log and the admin socket.\ndir = %q\n", o.stateDir)
	b.WriteString("\n# The lists; lists/README.md explains their entries. Paths are relative to this file.\n")
	for i, l := range initLists {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "[[list]]\nname = %q\npath = %q\n%s", l.name, l.file, l.settings)
	}
	return b.String()
}

// tlsText returns the keys of the certificate, as a comment without one.
func (o *initOptions) tlsText() string {
	if o.tlsCert != "" {
		return fmt.Sprintf(`# The certificate with its chain, and its key; changed files are read again.
tls = "starttls"
tls_cert = %q
tls_key = %q
`, o.tlsCert, o.tlsKey)
	}
	if o.server == mailservers.Maildir {
		return ""
	}
	return `# Without a certificate, mail comes without TLS:
# tls = "starttls"
# tls_cert = "/etc/ssl/gate.example.pem"            # with its chain
# tls_key = "/etc/ssl/private/gate.example.key"
`
}

// beforeWhat says what the gate is installed before.
func (o *initOptions) beforeWhat() string {
	switch o.server {
	case mailservers.Remote, mailservers.Maildir:
		return o.server.Name()
	}
	return o.server.Name() + " on the same machine"
}

func listenComment(addr string) string {
	switch addr {
	case systemdSockets:
		return "    # the sockets of spamgate.socket; else \":25\""
	case ":25":
		return "    # every address; \"systemd\": the sockets of spamgate.socket"
	}
	return ""
}

// nextHopText returns the keys of [next_hop] after addr.
func (o *initOptions) nextHopText() string {
	switch o.server {
	case mailservers.Postfix:
		return `# If Postfix does not offer XCLIENT it gets no mail: it would take every client for
# this machine, which may relay.
identity = "xclient"
`
	case mailservers.Exim, mailservers.OpenSMTPD:
		return `# A PROXY header names the client. Each client has connections of its own.
proxy = "v2"
identity = "none"
`
	case mailservers.Remote:
		return o.remoteText()
	case mailservers.Maildir:
		if o.public() {
			return "allow_public = true    # other machines may deliver into it\n"
		}
	}
	return ""
}

// remoteText returns the keys about TLS with a server on another machine.
func (o *initOptions) remoteText() string {
	text := `# The server would not believe the gate who the client is.
identity = "none"
`
	if !strings.HasPrefix(o.nextHop, "smtps://") {
		text += `# STARTTLS with a valid certificate, or no mail passes.
tls = "required"
`
	}
	host, _ := (mailservers.Settings{NextHop: o.nextHop}).HostPort()
	if _, err := netip.ParseAddr(host); err != nil {
		text += fmt.Sprintf("tls_name = %q    # the name in the certificate\n", host)
	}
	return text + `# tls_ca = "/etc/ssl/example-ca.pem"    # an authority of your own
# tls_pins = ["SHA-256 of its key"]      # or one key, as docs/next-hop.md says
`
}

// policyText returns the table [policy].
func (o *initOptions) policyText() string {
	if len(o.domains) == 0 {
		return ""
	}
	text := "\n[policy]\n# The domains that you accept mail for.\n"
	if file := o.domainFile(); file != "" {
		text += fmt.Sprintf("recipient_domains = %q\n", file)
	} else {
		text += "recipient_domains = [" + quotedLines(o.domains) + "]\n"
	}
	if o.contact == "" {
		return text
	}
	return text + fmt.Sprintf("# What a refused sender can do.\ncontact = %q\n", o.contact)
}

// domainFile returns "file:PATH" if the domains are in a file, or "".
func (o *initOptions) domainFile() string {
	if len(o.domains) == 1 && strings.HasPrefix(o.domains[0], "file:") {
		return o.domains[0]
	}
	return ""
}

// domainColumns is the width of lines of domains.
const domainColumns = 88

// quotedLines returns the elements of an array, in several lines if there are many.
func quotedLines(values []string) string {
	var b strings.Builder
	width := len("recipient_domains = [")
	for i, v := range values {
		word := fmt.Sprintf("%q", v)
		if i > 0 {
			b.WriteString(",")
			if width+len(word)+3 > domainColumns {
				b.WriteString("\n   ")
				width = 3
			}
			b.WriteString(" ")
		}
		b.WriteString(word)
		width += len(word) + 2
	}
	return b.String()
}

// public reports whether other machines reach the gate.
func (o *initOptions) public() bool {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return true // "systemd", or no address: the configuration's check says so
	}
	addr, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !addr.Unmap().IsLoopback())
}
