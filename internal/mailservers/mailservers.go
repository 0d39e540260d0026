// Package mailservers knows what a mail server after the gate, or one that asks the gate,
// needs in its own configuration: the lines to add to its files, and whether a
// configuration has them.
package mailservers

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Kind is a kind of server.
type Kind string

// The kinds of servers.
const (
	Postfix   Kind = "postfix"   // on this machine
	Exim      Kind = "exim"      // on this machine
	OpenSMTPD Kind = "opensmtpd" // on this machine
	LMTP      Kind = "lmtp"      // Dovecot on this machine
	Remote    Kind = "remote"    // a server on another machine; the lines are Postfix's
	Maildir   Kind = "maildir"   // none: the gate delivers
)

// Kinds are all kinds, in the order of the documentation.
var Kinds = []Kind{Postfix, Exim, OpenSMTPD, LMTP, Remote, Maildir, PostfixPolicy, PostfixMilter, Rspamd, DNS}

// Name returns the name of the server in a sentence.
func (k Kind) Name() string {
	switch k {
	case Postfix, PostfixPolicy, PostfixMilter:
		return "Postfix"
	case Rspamd:
		return "rspamd"
	case DNS:
		return "a mail server that asks over DNS"
	case Exim:
		return "Exim"
	case OpenSMTPD:
		return "OpenSMTPD"
	case LMTP:
		return "Dovecot"
	case Remote:
		return "a mail server on another machine"
	}
	return "a Maildir"
}

// Settings are the settings of the gate that decide what a server needs.
type Settings struct {
	// NextHop is the address of the server as in [next_hop] addr, with its port.
	NextHop string

	// Listen are the addresses of the gate's listeners: "host:port" or "systemd".
	Listen []string

	// Logins says that programs log in through the gate.
	Logins bool

	// TLS says that the gate uses TLS with the server in any case.
	TLS bool

	// Proxy says that the gate sends a PROXY header to a Postfix, and XCLIENT that it
	// needs XCLIENT there. Other servers have one way only.
	Proxy, XCLIENT bool

	// Door is where a server that asks the gate finds it: "host:port", or "unix:" and a
	// path. Zone and HashedZone are those of a DNS server.
	Door, Zone, HashedZone string

	// Chroot is "n" if Postfix's services have no root directory of their own, as
	// outside of Debian. See PostfixChroot.
	Chroot string
}

// HostPort returns host and port of the next hop, or "" if it is a socket or a Maildir.
func (s Settings) HostPort() (host, port string) {
	_, hostport, found := strings.Cut(s.NextHop, "://")
	if !found {
		return "", ""
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return hostport, "25"
	}
	return host, port
}

// gate returns the address from which a server on this machine sees the gate.
func (s Settings) gate() netip.Addr {
	host, _ := s.HostPort()
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() && !addr.Is4In6() {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// OnThisMachine reports whether the next hop is certainly on this machine.
func (s Settings) OnThisMachine() bool {
	host, _ := s.HostPort()
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// wants reports whether a listener of the gate needs a port of this machine that a
// server has bound. An empty host is every address.
func (s Settings) wants(host, port string) bool {
	return slices.ContainsFunc(s.Listen, func(listen string) bool {
		if listen == "systemd" {
			listen = ":25"
		}
		own, ownPort, err := net.SplitHostPort(listen)
		return err == nil && ownPort == port && port != "0" && overlaps(own, host)
	})
}

// overlaps reports whether two hosts to listen on have an address in common.
func overlaps(a, b string) bool {
	return everywhere(a) || everywhere(b) || sameHost(a, b)
}

func everywhere(host string) bool {
	switch host {
	case "", "0.0.0.0", "::", "*":
		return true
	}
	return false
}

// sameHost reports whether two hosts are one address. localhost is both loopbacks.
func sameHost(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	switch {
	case errX == nil && errY == nil:
		return x.Unmap() == y.Unmap()
	case errX == nil:
		return b == "localhost" && x.Unmap().IsLoopback()
	case errY == nil:
		return a == "localhost" && y.Unmap().IsLoopback()
	}
	return false
}

// portOf returns the number of a service's port.
func portOf(service string) string {
	switch service {
	case "smtp":
		return "25"
	case "submission":
		return "587"
	case "submissions", "smtps", "urd":
		return "465"
	case "lmtp":
		return "24"
	}
	return service
}

// Block is what an admin does to one file of a server.
type Block struct {
	File string `json:"file"`
	Do   string `json:"do"`   // what to do with the lines, or to the file before
	Text string `json:"text"` // the lines to add, with comments
}

// Lines returns what a server needs, and the commands that do the same, if it has such
// commands.
func Lines(k Kind, s Settings) (blocks []Block, commands []string) {
	switch k {
	case Postfix:
		return s.postfixLines()
	case Exim:
		return s.eximLines(), nil
	case OpenSMTPD:
		return s.openSMTPDLines(), nil
	case LMTP:
		return s.dovecotLines(), nil
	case Remote:
		return s.remoteLines(), nil
	case PostfixPolicy:
		return s.policyLines(), nil
	case PostfixMilter:
		return s.milterLines(), nil
	case Rspamd:
		return s.rspamdLines(), nil
	case DNS:
		return s.dnsLines(), nil
	}
	return nil, nil
}

// Status says whether a configuration has a line.
type Status string

// The statuses of a line.
const (
	Present Status = "present"
	Missing Status = "missing"
	Wrong   Status = "wrong"   // there is another value, or a line that must go
	Unknown Status = "unknown" // it cannot be told
)

// Finding is what was found out about one line.
type Finding struct {
	Status Status `json:"status"`
	File   string `json:"file"`
	Line   string `json:"line"`            // the line that is wanted, or "" if one must go
	Found  string `json:"found,omitempty"` // what is there instead
	Why    string `json:"why,omitempty"`   // what happens without the line
	Advice bool   `json:"advice"`          // mail passes without it
}

// Good reports whether the line is there, or not needed.
func (f Finding) Good() bool { return f.Status == Present || f.Advice }

// Check looks for the lines of a server in the text of its configuration, as Read
// returns it.
func Check(k Kind, s Settings, text string) ([]Finding, error) {
	switch k {
	case Postfix:
		return s.checkPostfix(text)
	case Exim:
		return s.checkExim(text)
	case OpenSMTPD:
		return s.checkOpenSMTPD(text)
	case LMTP:
		return s.checkDovecot(text)
	case Remote:
		return s.checkRemote(text)
	case PostfixPolicy, PostfixMilter:
		return s.checkAsking(k, text)
	}
	return nil, fmt.Errorf("%s has no configuration", k.Name())
}

// finding returns a Finding about a value: present if good, missing if there is none.
func finding(file, line, found string, good bool, why string) Finding {
	f := Finding{Status: Present, File: file, Line: line, Why: why}
	switch {
	case good:
		f.Why = ""
	case found == "":
		f.Status = Missing
	default:
		f.Status, f.Found = Wrong, found
	}
	return f
}
