package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"spamgate/internal/mailservers"
)

// initList is a list of a new configuration.
type initList struct{ name, settings string }

// text returns the list's table.
func (l initList) text() string { return fmt.Sprintf("[[list]]\nname = %q\n%s", l.name, l.settings) }

// managedLists are the lists that the gate keeps. The last one is left out if there is no room
// for it, or no recipient is known.
var managedLists = []initList{
	{"blocked", "managed = true\ndefault = true\n"},
	{"allowed", "type = \"allow\"\nmanaged = true\ndefault = true\n"},
	{"allowed-for", "type = \"allow\"\nmanaged = true\ndefault = true\nper_recipient = true\n"},
}

// fileLists are the lists in files, with what a file that is made for one says.
var fileLists = []struct {
	initList
	file, about string
}{
	{initList{"always-allow", "type = \"allow\"\noverride = true\n"}, "lists/always-allow.txt", "Senders whose mail always passes, whatever the other lists say."},
	{initList{"allowed-file", "type = \"allow\"\n"}, "lists/allowed.txt", "Senders who are exceptions from less specific entries of block lists."},
	{initList{"blocked-file", ""}, "lists/blocked.txt", "Senders whose mail is refused."},
}

// configText returns a configuration.
func (o *initOptions) configText() string {
	settings := o.settingsText()
	if o.server.Asks() {
		settings = o.doorText()
	}
	for n := len(managedLists); ; n-- {
		text := settings + o.stateText(managedLists[:n])
		if n == len(managedLists) && o.server.AsksDNS() {
			continue // who asks over DNS names no recipient
		}
		if n < len(managedLists) || strings.Count(text, "\n") <= o.maxLines() {
			return text
		}
	}
}

// settingsText returns what comes before the state directory and the lists, if mail passes
// through the gate.
func (o *initOptions) settingsText() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# spamgate before %s, written by "config init --for %s".
# All keys: spamgate.toml(5). After a change: spamgate config check --config FILE

hostname = %q    # the gate's own name, which it greets with

[listen]
addr = %q%s
`, o.beforeWhat(), o.server, o.hostname, o.listen, listenComment(o.listen))
	b.WriteString(o.tlsText())
	if o.submission {
		b.WriteString(`
# Mail programs log in here, or send nothing. The gate does not check their mail, but limits
# guesses of passwords, and whoever has guessed one.
`)
		for _, l := range []struct{ name, addr, tls string }{{"submissions", ":465", "implicit"}, {"submission", ":587", "required"}} {
			fmt.Fprintf(&b, `[[listener]]
name = %q
addr = %q
tls = %q
auth = "require"
exempt_authenticated = true
client_errors_per_minute = 20
network_errors_per_minute = 60
login_messages_per_minute = 20
login_recipients_per_minute = 100
`, l.name, l.addr, l.tls)
		}
	}
	fmt.Fprintf(&b, "\n[next_hop]\naddr = %q\n%s", o.nextHop, o.nextHopText())
	b.WriteString(o.policyText())
	return b.String()
}

// stateText returns the state directory and the lists.
func (o *initOptions) stateText(kept []initList) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[state]\ndir = %q    # indexes, managed lists, histories, the audit log\n", o.stateDir)
	b.WriteString("\n# Lists that the gate keeps: \"spamgate lists add\" and the console edit them.\n")
	for _, l := range kept {
		b.WriteString(l.text())
	}
	b.WriteString("\n# Lists in files of your own, as lists/README.md explains. Paths are relative to this file.\n")
	for _, l := range fileLists {
		l.settings = fmt.Sprintf("path = %q\n", l.file) + l.settings
		b.WriteString(l.text())
	}
	return b.String()
}

// tlsText returns the keys of the certificate, as a comment without one.
func (o *initOptions) tlsText() string {
	if o.tlsCert != "" {
		return fmt.Sprintf(`tls = "starttls"    # the certificate with its chain; changed files are read again
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
		return `# Without XCLIENT no mail passes: Postfix would take every client for this machine.
identity = "xclient"
`
	case mailservers.Exim, mailservers.OpenSMTPD:
		return `proxy = "v2"    # a header names the client; each client has connections of its own
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
	text := "\n[policy]    # the domains that you accept mail for; what a refused sender can do\n"
	if file := o.domainFile(); file != "" {
		text += fmt.Sprintf("recipient_domains = %q\n", file)
	} else {
		text += "recipient_domains = [" + quotedLines(o.domains) + "]\n"
	}
	if o.contact == "" {
		return text
	}
	return text + fmt.Sprintf("contact = %q\n", o.contact)
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
