package web

import (
	"net"
	"net/netip"
	"strings"

	"spamgate/internal/suffix"
)

// foreign reports whether a Host field has a name that a stranger may have registered: a page of that
// name could read what is served here, if the name leads to this address for a moment (DNS rebinding).
// Addresses, single labels, names that nobody can register and all names of the organizations of ours
// are not foreign, since monitoring asks by any of them, nor is an empty field (HTTP/1.0).
func foreign(host string, ours []string) bool {
	name := nameOf(host)
	if _, err := netip.ParseAddr(name); err == nil || !registrable(name) {
		return false
	}
	organization := suffix.Organization(name)
	for _, o := range ours {
		if o = nameOf(o); o == name || organization != "" && suffix.Organization(o) == organization {
			return false
		}
	}
	return true
}

// nameOf returns the name of a Host field, or of an address of the configuration.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// registrable reports whether a name is below a public suffix. Those of home networks (RFC 8375),
// containers and clusters are not: gate, gate.internal, gate.mail.svc.cluster.local.
func registrable(name string) bool {
	if !strings.Contains(name, ".") || strings.HasSuffix(name, ".home.arpa") {
		return false
	}
	for name != "" {
		if icann, _ := suffix.Of(name); icann {
			return true
		}
		_, name, _ = strings.Cut(name, ".")
	}
	return false
}
