package mailservers

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
)

// The files of Postfix.
const (
	mainCF   = "main.cf"
	masterCF = "master.cf"
)

// relayRestrictions says for whom Postfix relays.
const relayRestrictions = "smtpd_relay_restrictions"

// An option is a parameter that Postfix's service for the gate has in master.cf.
type option struct {
	name, value string
	comment     string // about this option and those after it that have none
	why         string // what happens without it
	good        func(value string) (good, known bool)
}

// options returns what Postfix's service for the gate needs.
func (s Settings) options() []option {
	gate := s.gate()
	names := func(value string) (bool, bool) { return inNetworks(value, gate) }
	knowsClient := s.XCLIENT || s.Proxy
	relay, relayComment := "permit_sasl_authenticated,reject_unauth_destination", "No permit_mynetworks: Postfix takes every client for this machine."
	if knowsClient {
		relay = "permit_mynetworks," + relay
		relayComment = "Refuse to relay with 5xx, as the gate's relay check wants it. (The default is\ndefer_unauth_destination, 4xx.)"
	}
	var all []option
	switch {
	case s.Proxy:
		all = append(all, option{name: "smtpd_upstream_proxy_protocol", value: "haproxy",
			comment: "The gate begins each connection with a PROXY header, which names the client.",
			why:     "Postfix takes the PROXY header for a command, and no mail passes",
			good:    func(value string) (bool, bool) { return value == "haproxy", true }})
	case s.XCLIENT:
		all = append(all, option{name: "smtpd_authorized_xclient_hosts", value: gate.String(),
			comment: "XCLIENT: Postfix treats each client as if it had connected directly. Its log,\nmynetworks, SPF, DNS blocklists and rate limits use the client's address.",
			why:     "Postfix does not learn who the client is, and the gate sends it no mail (451)",
			good:    names})
	}
	all = append(all,
		option{name: "smtpd_authorized_xforward_hosts", value: gate.String(),
			comment: "XFORWARD: Postfix logs the gate's id as orig_queue_id, and knows that the mail\ncomes from a stranger.",
			why:     "Postfix's log does not have the gate's id, and Postfix takes strangers for programs of this machine",
			good:    names},
		option{name: "local_header_rewrite_clients",
			comment: "Do not complete addresses in strangers' headers: \"From: spam%listed.example\"\nwould become spam@listed.example after the gate has judged it.",
			why:     "Postfix completes addresses in strangers' headers after the gate has judged them",
			good:    func(value string) (bool, bool) { return value == "", true }},
		option{name: relayRestrictions, value: relay, comment: relayComment,
			why: "Postfix relays for strangers, or refuses that with 4xx, which keeps the gate's relay check waiting",
			good: func(value string) (bool, bool) {
				refuses := containsWord(value, "reject_unauth_destination") || containsWord(value, "reject")
				return refuses && (knowsClient || !containsWord(value, "permit_mynetworks")), true
			}})
	if s.Logins {
		all = append(all,
			option{name: "smtpd_sasl_auth_enable", value: "yes",
				comment: "Mail programs log in through the gate. TLS ends there, and is not needed here.\nsmtpd_sasl_type and smtpd_sasl_path stay as they are in main.cf.",
				why:     "mail programs cannot log in through the gate",
				good:    func(value string) (bool, bool) { return value == "yes", true }},
			option{name: "smtpd_tls_auth_only", value: "no",
				why:  "Postfix wants TLS of its own before a login, and the gate has ended it",
				good: func(value string) (bool, bool) { return value == "no", true }})
	}
	return all
}

// service returns the name of Postfix's service for the gate.
func (s Settings) service() string {
	host, port := s.HostPort()
	return net.JoinHostPort(host, port)
}

// postfixService returns the line of the service after its name.
func (s Settings) postfixService() string {
	return " inet n - " + cmp.Or(s.Chroot, "y") + " - - smtpd"
}

func (s Settings) postfixLines() (blocks []Block, commands []string) {
	var text, do strings.Builder
	command := s.service() + s.postfixService()
	fmt.Fprintf(&text, "# Mail from the gate.\n%s%s\n", s.service(), s.postfixService())
	for _, o := range s.options() {
		if o.comment != "" {
			comment(&text, o.comment)
		}
		fmt.Fprintf(&text, "    -o %s=%s\n", o.name, o.value)
		command += " -o " + o.name + "=" + o.value
	}
	for _, old := range []struct{ port, service, what string }{
		{"25", "smtp", `"smtp inet ... smtpd" (or "... postscreen", which does not support XCLIENT)`},
		{"465", "submissions", `"submissions inet ... smtpd" (or "smtps inet ...")`},
		{"587", "submission", `"submission inet ... smtpd"`},
	} {
		if s.wants("", old.port) {
			fmt.Fprintf(&do, "Put \"#\" before the line %s, and before the \"-o\" lines below it: the gate has port %s now. ", old.what, old.port)
			commands = append(commands, "postconf -M# "+old.service+"/inet")
		}
	}
	do.WriteString(`Add these lines; then run "postfix reload".`)
	commands = append(commands, "postconf -Me '"+s.service()+"/inet="+command+"'", "postfix reload")
	return []Block{{File: "/etc/postfix/" + masterCF, Do: do.String(), Text: text.String()}}, commands
}

// comment writes the lines of a comment.
func comment(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("# " + line + "\n")
	}
}

// A postfixConfig is what "postconf -x; postconf -M; postconf -xP" prints.
type postfixConfig struct {
	main     map[string]string
	services []masterService
	options  map[string]map[string]string // by service, such as "smtp" and "smtp/unix"
}

// masterService is a line of master.cf.
type masterService struct{ name, kind, host, port, command string } // the kind is inet or pass

var (
	serviceOption = regexp.MustCompile(`^(\S+?)(/unix|/inet|/pass)/(\w+) = ?(.*)$`)
	parameter     = regexp.MustCompile(`^(\w+) = ?(.*)$`)
	smtpService   = regexp.MustCompile(`^(\S+) +(inet|pass) +\S+ +\S+ +\S+ +\S+ +\S+ +(\S+)`)
)

// parsePostfix parses the output of postconf.
func parsePostfix(text string) (postfixConfig, error) {
	c := postfixConfig{main: map[string]string{}, options: map[string]map[string]string{}}
	masterSeen := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n ")
		if m := serviceOption.FindStringSubmatch(line); m != nil {
			service := m[1]
			if m[2] == "/unix" {
				service += m[2]
			}
			if c.options[service] == nil {
				c.options[service] = map[string]string{}
			}
			c.options[service][m[3]] = strings.TrimSpace(m[4])
		} else if m := parameter.FindStringSubmatch(line); m != nil {
			c.main[m[1]] = strings.TrimSpace(m[2])
		} else if m := smtpService.FindStringSubmatch(line); m != nil {
			masterSeen = true
			host, port := splitService(m[1])
			c.services = append(c.services, masterService{m[1], m[2], host, port, m[3]})
		} else if f := strings.Fields(line); len(f) >= 8 && strings.HasPrefix(f[1], "unix") {
			masterSeen = true
		}
	}
	if !masterSeen || len(c.main) == 0 {
		return c, errors.New(`this is not what postconf prints: use (postconf -x; postconf -M; postconf -xP)`)
	}
	return c, nil
}

// splitService returns host and port of a service's name, such as "127.0.0.1:10025".
func splitService(name string) (host, port string) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return "", portOf(name)
	}
	return strings.Trim(name[:i], "[]"), portOf(name[i+1:])
}

// value returns the value that a service uses of a parameter.
func (c postfixConfig) value(service, name string) string {
	if value, ok := c.options[service][name]; ok {
		return value
	}
	return c.main[name]
}

func (s Settings) checkPostfix(text string) ([]Finding, error) {
	c, err := parsePostfix(text)
	if err != nil {
		return nil, err
	}
	found := s.foreignServices(c)
	own := c.serviceAt(s.HostPort())
	line := s.service() + s.postfixService()
	if own == nil || own.command != "smtpd" {
		f := finding(masterCF, line, "", false, "Postfix does not listen where the gate connects")
		if own != nil {
			f = finding(masterCF, line, own.name+" inet ... "+own.command, false, own.command+" does not support XCLIENT; use smtpd")
		}
		found = append(found, f)
		own = &masterService{}
	} else {
		f := Finding{Status: Present, File: masterCF, Line: own.name + " inet ... smtpd"}
		if everywhere(own.host) {
			f.Status, f.Found, f.Line, f.Advice = Wrong, f.Line, line, true
			f.Why = "other machines may reach this port, past the gate, unless a firewall or inet_interfaces keeps them out"
		}
		found = append(found, f)
	}
	for _, o := range s.options() {
		if r := (receiver{c, *own}); own.name == "" || o.name != relayRestrictions || s.refusesStrangers(r, entries(r.get(o.name))) < 0 {
			found = append(found, c.checkOption(*own, o))
		}
	}
	return append(append(found, s.checkPostfixMain(c)...), s.checkMail(c, *own)...), nil
}

// serviceAt returns the service that has bound a port, or nil.
func (c postfixConfig) serviceAt(host, port string) (found *masterService) {
	for i, service := range c.services {
		if service.port == port && (service.host == "" || sameHost(service.host, host)) {
			found = &c.services[i]
		}
	}
	return found
}

// foreignServices returns a Finding for each service that has a port that the gate needs.
func (s Settings) foreignServices(c postfixConfig) []Finding {
	var found []Finding
	for _, service := range c.services {
		if s.wants(service.host, service.port) {
			found = append(found, Finding{Status: Wrong, File: masterCF, Found: service.name + " inet ... " + service.command,
				Why: fmt.Sprintf("it has port %s, which the gate needs: put \"#\" before it and its \"-o\" lines", service.port)})
		}
	}
	return found
}

func (c postfixConfig) checkOption(own masterService, o option) Finding {
	line := "    -o " + o.name + "=" + o.value
	if own.name == "" { // all options are missing with their service
		return finding(masterCF, line, "", false, o.why)
	}
	value := c.value(own.name, o.name)
	good, known := o.good(value)
	if !known {
		return Finding{Status: Unknown, File: masterCF, Line: line, Found: o.name + " = " + value, Why: "this value names a table, which is not looked up here"}
	}
	_, set := c.options[own.name][o.name]
	switch {
	case good && !set:
		return Finding{Status: Present, File: mainCF, Line: strings.TrimSpace(o.name + " = " + value)}
	case good:
		return Finding{Status: Present, File: masterCF, Line: line}
	case set:
		return finding(masterCF, line, o.name+" = "+value, false, o.why)
	}
	return finding(masterCF, line, "", false, o.why)
}

// checkPostfixMain checks parameters that are right by default.
func (s Settings) checkPostfixMain(c postfixConfig) []Finding {
	var found []Finding
	if value := c.main["remote_header_rewrite_domain"]; value != "" {
		found = append(found, finding(mainCF, "remote_header_rewrite_domain =", "remote_header_rewrite_domain = "+value, false,
			`Postfix completes addresses in everybody's headers; see "Servers that rewrite headers" in docs/next-hop.md`))
	}
	if value := c.main["inet_protocols"]; value == "ipv4" && s.XCLIENT && !s.Proxy && s.listensIPv6() {
		f := finding(mainCF, "inet_protocols = all", "inet_protocols = ipv4", false,
			`Postfix refuses IPv6 clients in XCLIENT, and they get 451; or let the gate listen on "0.0.0.0:25"`)
		f.Advice = true
		found = append(found, f)
	}
	return found
}

func (s Settings) listensIPv6() bool {
	for _, listen := range s.Listen {
		host, _, err := net.SplitHostPort(listen)
		if addr, parsed := netip.ParseAddr(host); err != nil || parsed != nil || addr.Is6() {
			return true
		}
	}
	return false
}

func containsWord(list, word string) bool {
	for _, w := range listWords(list) {
		if w == word {
			return true
		}
	}
	return false
}

// listWords splits a list of Postfix, Exim or OpenSMTPD at commas and white space.
func listWords(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// inNetworks reports whether a list of Postfix contains an address. The first word that
// matches counts, and "!" excludes. Known is false if a word is a table.
func inNetworks(list string, addr netip.Addr) (in, known bool) {
	known = true
	for _, word := range listWords(list) {
		pattern, not := strings.CutPrefix(word, "!")
		if pattern == "static:all" {
			return !not, true
		}
		plain := strings.NewReplacer("[", "", "]", "").Replace(pattern)
		ip, err := netip.ParseAddr(plain)
		network, errNetwork := netip.ParsePrefix(plain)
		switch {
		case err == nil && ip.Unmap() == addr, errNetwork == nil && network.Contains(addr):
			return !not, true
		case err != nil && errNetwork != nil && strings.ContainsAny(pattern, ":/"):
			known = false
		case pattern == "localhost" && addr.IsLoopback():
			return !not, true
		}
	}
	return false, known
}
