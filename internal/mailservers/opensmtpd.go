package mailservers

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

const smtpdConf = "smtpd.conf"

func (s Settings) openSMTPDLine() string {
	host, port := s.HostPort()
	return fmt.Sprintf("listen on %s port %s proxy-v2", host, port)
}

func (s Settings) openSMTPDLines() []Block {
	do := "Add this line; then restart smtpd."
	if s.wants("", "25") {
		do = `Put "#" before "listen on ..." lines for port 25, which is the default: the gate has it now. Add this line; then restart smtpd.`
	}
	return []Block{{File: "/etc/smtpd.conf", Do: do, Text: fmt.Sprintf(`# Mail from the gate. Each connection begins with a PROXY header, which names the
# client: the log and "match from" use the client's address. (OpenSMTPD 6.6 or later.)
# Programs of this machine use sendmail, and mail programs a port of OpenSMTPD's own,
# since it allows logins under its own TLS only. OpenSMTPD completes words without a
# domain in strangers' headers: "From: spammer" arrives with the name in its greeting.
# The gate looks up both forms.
%s
`, s.openSMTPDLine())}}
}

// A listenLine is a "listen on" of smtpd.conf.
type listenLine struct {
	text, host, port string
	proxy            bool
}

func (s Settings) checkOpenSMTPD(text string) ([]Finding, error) {
	lines, directives := listenLines(text)
	if directives == 0 {
		return nil, errors.New("this is not a configuration of OpenSMTPD: name its smtpd.conf")
	}
	host, port := s.HostPort()
	var found []Finding
	var own *listenLine
	for i, l := range lines {
		switch {
		case l.port == port && (everywhere(l.host) || l.host == "all" || sameHost(loopback(l.host), host) || sameHost(l.host, host)):
			own = &lines[i]
		case s.wants(openSMTPDHost(l.host), l.port):
			found = append(found, Finding{Status: Wrong, File: smtpdConf, Found: l.text, Why: "the gate needs port " + l.port + `: put "#" before the line`})
		}
	}
	why, was := "OpenSMTPD does not listen where the gate connects", ""
	if own != nil {
		why, was = "OpenSMTPD takes the PROXY header for a command, and no mail passes", own.text
	}
	f := finding(smtpdConf, s.openSMTPDLine(), was, own != nil && own.proxy, why)
	if f.Status == Missing && strings.Contains(text, "\ninclude ") {
		f.Why += "; files that smtpd.conf includes are not read here"
	}
	return append(found, f), nil
}

// loopback returns the address of a loopback interface.
func loopback(name string) string {
	if name == "lo" || name == "lo0" {
		return "localhost"
	}
	return name
}

// openSMTPDHost returns the host of a "listen on". An interface may have any address.
func openSMTPDHost(name string) string {
	if name == "all" || loopback(name) == name && net.ParseIP(name) == nil && name != "localhost" {
		return ""
	}
	return loopback(name)
}

// listenLines returns the lines that listen on the network, and how many lines there are
// of all kinds.
func listenLines(text string) (lines []listenLine, directives int) {
	macros := map[string]string{}
	for line := range logicalLines(text) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		words := strings.Fields(strings.ReplaceAll(line, `"`, ""))
		if len(words) == 0 {
			continue
		}
		if name, value, found := strings.Cut(line, "="); found && len(strings.Fields(name)) == 1 {
			macros[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"`)
			continue
		}
		if slices.Contains([]string{"listen", "action", "match", "table", "include", "pki", "smtp", "queue", "mta", "filter", "ca"}, words[0]) {
			directives++
		}
		for i, word := range words {
			if name, found := strings.CutPrefix(word, "$"); found {
				words[i] = macros[name]
			}
		}
		if len(words) >= 3 && words[0] == "listen" && words[1] == "on" && words[2] != "socket" {
			lines = append(lines, listenLinesOf(line, words)...)
		}
	}
	return lines, directives
}

// listenLinesOf returns the listeners of a line: "smtps" and "tls" without a port are two.
func listenLinesOf(line string, words []string) []listenLine {
	l := listenLine{text: line, host: words[2], proxy: slices.Contains(words, "proxy-v2")}
	if i := slices.Index(words, "port"); i >= 0 && i+1 < len(words) {
		l.port = portOf(words[i+1])
		return []listenLine{l}
	}
	l.port = "25"
	if !slices.Contains(words, "smtps") {
		return []listenLine{l}
	}
	l.port = "465"
	if !slices.Contains(words, "tls") {
		return []listenLine{l}
	}
	plain := l
	plain.port = "25"
	return []listenLine{plain, l}
}
