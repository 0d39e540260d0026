package mailservers

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
)

const eximFile = "Exim's main section"

// eximInterface returns where Exim listens for the gate, as in local_interfaces.
func (s Settings) eximInterface() string {
	host, port := s.HostPort()
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		return host + "." + port
	}
	if host == "localhost" {
		return "127.0.0.1." + port
	}
	return "<; [" + host + "]:" + port
}

// eximGate returns the gate's address, as in hosts_proxy.
func (s Settings) eximGate() string {
	if gate := s.gate(); gate.Is6() {
		return "<; " + gate.String()
	}
	return "127.0.0.1"
}

func (s Settings) eximLines() []Block {
	blocks := []Block{{
		File: "/etc/exim4/exim4.conf.template",
		Do: "The main section of Exim's configuration. (Debian with split configuration: dc_local_interfaces in " +
			"/etc/exim4/update-exim4.conf.conf for the first line, and a file in /etc/exim4/conf.d/main for the others.) " +
			"Replace lines of the same names; then restart Exim.",
		Text: fmt.Sprintf(`# Exim listens for the gate only. Add other ports, such as "0.0.0.0.587".
local_interfaces = %s
# Each connection from the gate begins with a PROXY header, which names the client:
# Exim's log and every ACL use the client's address. All connections from this address,
# to any port, must begin so: programs of this machine use sendmail.
hosts_proxy = %s
# Each client of the gate has a connection of its own; the default is 20.
smtp_accept_max = 200
# The gate sends 10 messages in a connection, after which Exim leaves mail in its queue
# (smtp_accept_queue_per_connection). It knows Exim by its greeting: if you set
# smtp_banner, set messages_per_connection = 10 in the gate's [next_hop].
`, s.eximInterface(), s.eximGate()),
	}}
	if s.Logins {
		blocks = append(blocks, Block{File: "/etc/exim4/exim4.conf.template", Do: "In the ACL for RCPT; Debian's has this line. " +
			"Exim's authenticators must not require TLS (no server_advertise_condition with $tls_in_cipher): TLS ends at the gate.",
			Text: "# Mail programs that have logged in through the gate may send to any domain.\naccept authenticated = *\n"})
	}
	return blocks
}

var (
	eximOption = regexp.MustCompile(`^ *(?:hide +)?([a-z][a-z0-9_]*) *= *(.*)$`)
	// eximSupports is the line in the output of "exim -bV".
	eximSupports = regexp.MustCompile(`(?m)^Support for: *(.*)$`)

	eximMacro = regexp.MustCompile(`\b[A-Z][A-Z0-9_]{2,}\b`)
)

// parseExim returns the options of the main section, from the output of "exim -bP" or
// from a configuration file without macros.
func parseExim(text string) (map[string]string, error) {
	options := map[string]string{}
	for line := range logicalLines(text) {
		if strings.HasPrefix(line, "begin ") {
			break
		}
		if m := eximOption.FindStringSubmatch(line); m != nil {
			options[m[1]] = strings.TrimSpace(m[2])
		}
	}
	if len(options) == 0 {
		return nil, errors.New("this is not a configuration of Exim: use the output of exim -bP")
	}
	return options, nil
}

// logicalLines calls yield with each line that is not a comment, joined with the lines
// that continue it after a backslash.
func logicalLines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		joined := ""
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, " \t\r\n")
			if start := strings.TrimLeft(line, " \t"); strings.HasPrefix(start, "#") {
				continue
			}
			joined += strings.TrimLeft(line, " \t")
			if before, continued := strings.CutSuffix(joined, `\`); continued {
				joined = before
				continue
			}
			if joined != "" && !yield(joined) {
				return
			}
			joined = ""
		}
		if joined != "" {
			yield(joined)
		}
	}
}

// eximList splits a list of Exim: at colons, where a doubled colon stands for one, or at
// the character after "<".
func eximList(value string) []string {
	separator := ":"
	if rest, found := strings.CutPrefix(value, "<"); found && rest != "" {
		separator, value = rest[:1], rest[1:]
	}
	const one = "\x00"
	value = strings.ReplaceAll(value, separator+separator, one)
	var words []string
	for word := range strings.SplitSeq(value, separator) {
		if word = strings.TrimSpace(strings.ReplaceAll(word, one, separator)); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// eximListens returns host and port of each interface.
func eximListens(options map[string]string) (all [][2]string) {
	interfaces, ports := []string{"0.0.0.0", "::0"}, []string{"smtp"}
	if value, ok := options["local_interfaces"]; ok {
		interfaces = eximList(value)
	}
	if value, ok := options["daemon_smtp_ports"]; ok {
		ports = eximList(value)
	}
	for _, word := range interfaces {
		if host, port, found := eximHostPort(word); found {
			all = append(all, [2]string{host, port})
			continue
		}
		for _, port := range ports {
			all = append(all, [2]string{strings.Trim(word, "[]"), portOf(port)})
		}
	}
	for i, listens := range all {
		if addr, err := netip.ParseAddr(listens[0]); err == nil {
			all[i][0] = addr.String() // "::0" is "::"
		}
	}
	return all
}

// eximHostPort splits "127.0.0.1.25", "[::1]:25" and "::1.25".
func eximHostPort(word string) (host, port string, found bool) {
	if host, port, err := net.SplitHostPort(word); err == nil && strings.HasPrefix(word, "[") {
		return host, port, true
	}
	i := strings.LastIndexByte(word, '.')
	if i < 0 {
		return "", "", false
	}
	if _, err := netip.ParseAddr(word); err == nil {
		return "", "", false
	}
	return strings.Trim(word[:i], "[]"), word[i+1:], true
}

func (s Settings) checkExim(text string) ([]Finding, error) {
	options, err := parseExim(text)
	if err != nil {
		return nil, err
	}
	found := []Finding{s.checkEximInterfaces(options)}
	for _, listens := range eximListens(options) {
		if _, err := netip.ParseAddr(listens[0]); err == nil && s.wants(listens[0], listens[1]) {
			found = append(found, Finding{Status: Wrong, File: eximFile, Found: "port " + listens[1] + " of " + listens[0] + " in local_interfaces",
				Why: "the gate needs this port"})
		}
	}
	if supports := eximSupports.FindStringSubmatch(text); supports != nil && s.Proxy && !containsWord(supports[1], "PROXY") {
		found = append(found, Finding{Status: Wrong, File: "exim -bV", Line: "Support for: ... PROXY", Found: supports[0],
			Why: "this Exim does not know hosts_proxy, and no mail passes: install one with PROXY support (Debian: exim4-daemon-heavy)"})
	}
	hosts := options["hosts_proxy"]
	in, known := inHosts(hosts, s.gate())
	if !s.Proxy {
		if in {
			found = append(found, Finding{Status: Wrong, File: eximFile, Line: "hosts_proxy =", Found: withName("hosts_proxy", hosts),
				Why: "Exim waits for a PROXY header, which the gate does not send (proxy in [next_hop]): no mail passes"})
		}
		return append(found, checkEximAccept(options)), nil
	}
	f := finding(eximFile, "hosts_proxy = "+s.eximGate(), withName("hosts_proxy", hosts), in,
		"Exim takes the PROXY header for a command, and no mail passes")
	if !in && !known {
		f.Status, f.Why = Unknown, "this value names a list or a macro, which is not looked up here"
	}
	return append(found, f, checkEximAccept(options)), nil
}

func checkEximAccept(options map[string]string) Finding {
	most := options["smtp_accept_max"]
	f := finding(eximFile, "smtp_accept_max = 200", withName("smtp_accept_max", most), most != "" && most != "20",
		"each client has a connection of its own, and Exim takes 20")
	f.Advice = true
	return f
}

func withName(name, value string) string {
	if value == "" {
		return ""
	}
	return name + " = " + value
}

func (s Settings) checkEximInterfaces(options map[string]string) Finding {
	host, port := s.HostPort()
	value := options["local_interfaces"]
	good := false
	for _, listens := range eximListens(options) {
		good = good || listens[1] == port && (everywhere(listens[0]) || sameHost(listens[0], host))
	}
	f := finding(eximFile, "local_interfaces = "+s.eximInterface(), withName("local_interfaces", value), good,
		"Exim does not listen where the gate connects")
	if !good && eximMacro.MatchString(value) {
		f.Status, f.Why = Unknown, "this value has a macro: use the output of exim -bP"
	}
	return f
}

// inHosts reports whether a host list of Exim contains an address. Known is false if a
// word is neither an address nor a network.
func inHosts(list string, addr netip.Addr) (in, known bool) {
	known = true
	for _, word := range eximList(list) {
		pattern, not := strings.CutPrefix(word, "!")
		pattern = strings.TrimSpace(pattern)
		ip, err := netip.ParseAddr(pattern)
		network, errNetwork := netip.ParsePrefix(pattern)
		switch {
		case pattern == "*", err == nil && ip.Unmap() == addr, errNetwork == nil && network.Contains(addr):
			return !not, true
		case err != nil && errNetwork != nil:
			known = false
		}
	}
	return false, known
}
