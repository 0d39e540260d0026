package mailservers

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	dovecotFile = "Dovecot's configuration"
	baseDir     = "/run/dovecot"
)

// socket returns the path of the next hop's socket, or "" with TCP.
func (s Settings) socket() string {
	socket, _ := strings.CutPrefix(s.NextHop, "lmtp+unix:")
	if socket == s.NextHop {
		return ""
	}
	return socket
}

// dovecotListener returns the lines of the listener for the gate.
func (s Settings) dovecotListener() string {
	if socket := s.socket(); socket != "" {
		return fmt.Sprintf("unix_listener %s {\n    mode = 0666\n  }", strings.TrimPrefix(socket, baseDir+"/"))
	}
	host, port := s.HostPort()
	return fmt.Sprintf("inet_listener lmtp {\n    address = %s\n    port = %s\n  }", host, port)
}

func (s Settings) dovecotLines() []Block {
	about := `  # The gate's user must be able to write to the socket. With 0666 every user of this
  # machine can deliver mail; with "user = spamgate" and "mode = 0600" only the gate can.
`
	if s.socket() == "" {
		about = ""
	}
	return []Block{{File: "/etc/dovecot/conf.d/99-spamgate.conf", Do: `A new file; then run "doveadm reload".`, Text: fmt.Sprintf(`# LMTP for the gate. Dovecot refuses unknown users in the SMTP session. It does not
# log the client's address; the gate's log and the Received: field have it.
# (From Dovecot 2.4 on, protocols is a section, "protocols {", with a line "lmtp = yes".)
protocols = $protocols lmtp
service lmtp {
%s  %s
}
`, about, s.dovecotListener())}}
}

// A section is a "name {" of a configuration of Dovecot, with what is in it.
type section struct {
	name     string
	settings map[string]string
	sections []*section
}

// parseDovecot parses what doveconf prints.
func parseDovecot(text string) (*section, error) {
	top := &section{settings: map[string]string{}}
	open := []*section{top}
	for line := range logicalLines(text) {
		last := open[len(open)-1]
		name, begins := strings.CutSuffix(line, "{")
		switch {
		case line == "}" && len(open) > 1:
			open = open[:len(open)-1]
		case line == "}":
			return nil, errors.New(`this is not what doveconf prints: "}" without "{"`)
		case begins:
			s := &section{name: strings.TrimSpace(name), settings: map[string]string{}}
			last.sections = append(last.sections, s)
			open = append(open, s)
		default:
			if key, value, found := strings.Cut(line, "="); found {
				last.settings[strings.TrimSpace(key)] = strings.TrimSpace(strings.Trim(strings.TrimSpace(value), `"`))
			}
		}
	}
	if len(open) > 1 || len(top.settings)+len(top.sections) == 0 {
		return nil, errors.New("this is not what doveconf prints: use the output of doveconf")
	}
	return top, nil
}

// find returns the sections that begin with a word.
func (s *section) find(word string) []*section {
	var found []*section
	for _, sub := range s.sections {
		if sub.name == word || strings.HasPrefix(sub.name, word+" ") {
			found = append(found, sub)
		}
	}
	return found
}

// speaksLMTP reports whether protocols contains lmtp, as a list or, from Dovecot 2.4 on,
// as a section.
func (s *section) speaksLMTP() bool {
	if slices.Contains(listWords(s.settings["protocols"]), "lmtp") {
		return true
	}
	return slices.ContainsFunc(s.find("protocols"), func(p *section) bool { return p.settings["lmtp"] == "yes" })
}

func (s Settings) checkDovecot(text string) ([]Finding, error) {
	top, err := parseDovecot(text)
	if err != nil {
		return nil, err
	}
	was := withName("protocols", top.settings["protocols"])
	found := []Finding{finding(dovecotFile, "protocols = $protocols lmtp", was, top.speaksLMTP(), "LMTP is off")}
	good, was := s.listensLMTP(top)
	why := "Dovecot does not listen where the gate connects"
	if was != "" {
		why = "the gate's user, " + gateUser + ", may not write to the socket"
	}
	found = append(found, finding(dovecotFile, "service lmtp { "+strings.Join(strings.Fields(s.dovecotListener()), " ")+" }", was, good, why))
	return append(found, top.checkUsernames()...), nil
}

// dropsDomain matches values of auth_username_format that leave out the domain, up to Dovecot 2.3
// and from 2.4 on.
var dropsDomain = regexp.MustCompile(`%[A-Z]*n\b|%\{[^}]*\busername\b`)

// checkUsernames checks whether Dovecot finds the system's users, which have no domain, by the
// addresses of recipients.
func (s *section) checkUsernames() []Finding {
	const name = "auth_username_format"
	format := s.settings[name]
	databases := s.find("userdb")
	system := slices.ContainsFunc(databases, func(db *section) bool {
		return db.settings["driver"] == "passwd" || db.name == "userdb passwd" && db.settings["driver"] == ""
	})
	inLMTP := slices.ContainsFunc(s.find("protocol lmtp"), func(p *section) bool { return dropsDomain.MatchString(p.settings[name]) })
	if !system || inLMTP || dropsDomain.MatchString(format) {
		return nil
	}
	line := name + " = %Ln"
	if s.settings["dovecot_config_version"] != "" {
		line = name + " = %{user | username | lower}"
	}
	f := finding(dovecotFile, line, withName(name, format), false,
		"the recipient you@example.org is the user you of this machine only without its domain: Dovecot answers 550, and no mail arrives")
	if f.Advice = len(databases) > 1; f.Advice {
		f.Why = "users of this machine, unlike those of the other userdb, have no domain: Dovecot answers 550 to their addresses"
	}
	return []Finding{f}
}

// listensLMTP reports whether Dovecot's LMTP listens where the gate connects, and what is
// there instead. "doveconf -n" leaves out what is the default.
func (s Settings) listensLMTP(top *section) (good bool, was string) {
	base := top.settings["base_dir"]
	if base == "" {
		base = baseDir
	}
	defaultSocket := s.socket() == path.Join(base, "lmtp")
	for _, service := range top.find("service lmtp") {
		for _, l := range service.find("unix_listener") {
			name := strings.TrimPrefix(l.name, "unix_listener ")
			if l.settings["path"] != "" {
				name = l.settings["path"]
			}
			if !path.IsAbs(name) {
				name = path.Join(base, name)
			}
			if name != s.socket() {
				continue
			}
			return writable(l)
		}
		for _, l := range service.find("inet_listener") {
			if s.isListener(l) {
				return true, ""
			}
		}
	}
	return defaultSocket, ""
}

// gateUser is the user and group of the gate, as its packages make them.
const gateUser = "spamgate"

// writable reports whether the gate may write to a socket, and who may instead.
func writable(l *section) (good bool, was string) {
	mode, err := strconv.ParseUint(l.settings["mode"], 8, 32)
	switch {
	case err != nil, mode&0o002 != 0, // the default is 0666
		mode&0o020 != 0 && l.settings["group"] == gateUser,
		mode&0o200 != 0 && l.settings["user"] == gateUser:
		return true, ""
	}
	was = "mode = " + l.settings["mode"]
	for _, key := range []string{"user", "group"} {
		if l.settings[key] != "" {
			was += ", " + withName(key, l.settings[key])
		}
	}
	return false, was
}

// isListener reports whether an inet_listener is the next hop.
func (s Settings) isListener(l *section) bool {
	host, port := s.HostPort()
	if l.settings["port"] != port || port == "" {
		return false
	}
	addresses := listWords(l.settings["address"] + " " + l.settings["listen"])
	if len(addresses) == 0 {
		return true
	}
	return slices.ContainsFunc(addresses, func(a string) bool {
		if a == "*" || a == "::" {
			addr, err := netip.ParseAddr(host)
			return err != nil || addr.Is4() == (a == "*")
		}
		return sameHost(a, host)
	})
}
