package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"spamgate/blocklist/sender"
)

// The errors of this file complete a sentence that begins with the value.

var errNoDomain = errors.New("is not a domain name")

// maxLabel is from RFC 1035, section 2.3.4.
const maxLabel = 63

// domainName normalises a domain name as sender addresses are normalised, so
// that both compare byte by byte. It is stricter: besides letters, digits and
// hyphens it accepts only "_", which some real names have.
func domainName(s string) (string, error) {
	name, err := sender.NormalizeDomain(s)
	if err != nil || strings.ContainsFunc(name, notInDomain) {
		return "", errNoDomain
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > maxLabel {
			return "", fmt.Errorf("has more than %d bytes between two dots", maxLabel)
		}
	}
	return name, nil
}

func notInDomain(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

// mailDomain normalises a domain name or an address literal.
func mailDomain(s string) (string, error) {
	if !strings.HasPrefix(s, "[") {
		return domainName(s)
	}
	literal, err := sender.NormalizeDomain(s)
	if err != nil {
		return "", errNoDomain
	}
	return literal, nil
}

// hostname normalises what may follow EHLO: a domain or an address literal
// (RFC 5321, section 4.1.3).
func hostname(s string) (string, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		return addressLiteral(inner)
	}
	name, err := domainName(s)
	if _, notAddr := netip.ParseAddr(cmp.Or(name, s)); notAddr == nil {
		return "", errors.New("is an IP address, which must be in brackets here")
	}
	if err != nil {
		return "", err
	}
	for label := range strings.SplitSeq(name, ".") {
		if strings.Contains(label, "_") || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return "", fmt.Errorf("is not a host name: its part %q is not made of letters, digits and inner hyphens", label)
		}
	}
	return name, nil
}

// addressLiteral parses what follows the opening bracket.
func addressLiteral(inner string) (string, error) {
	inner, ok := strings.CutSuffix(inner, "]")
	text, tagged := inner, false
	if len(inner) > 5 && strings.EqualFold(inner[:5], "IPv6:") {
		text, tagged = inner[5:], true
	}
	addr, err := netip.ParseAddr(text)
	if !ok || err != nil || addr.Zone() != "" || addr.Is6() != tagged {
		return "", errors.New(`is not an address literal, such as "[192.0.2.1]" or "[IPv6:2001:db8::1]"`)
	}
	if tagged {
		return "[IPv6:" + addr.String() + "]", nil
	}
	return "[" + addr.String() + "]", nil
}

// checkListen checks one address of a listener.
func checkListen(s string) error {
	if s == Systemd {
		return nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("is not of the form host:port")
	}
	n, err := parsePort(port, 0)
	if err != nil {
		return err
	}
	if strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("has the port %q, which begins with a zero", port)
	}
	if host == "" {
		return nil
	}
	if _, err := normalHost(host); err != nil {
		return fmt.Errorf("has the host %q, which %w", host, err)
	}
	return nil
}

// parsePort parses a port, at least least.
func parsePort(port string, least uint64) (uint64, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n < least {
		return 0, fmt.Errorf("has the port %q, which is not a number from %d to 65535", port, least)
	}
	return n, nil
}

// zoneName is a zone (RFC 4007, section 11) that is not mistaken for what follows
// it.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// normalHost normalises a domain name or an IP address.
func normalHost(host string) (string, error) {
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return domainName(host)
	case addr.Zone() != "" && !zoneName.MatchString(addr.Zone()):
		return "", fmt.Errorf("has the zone %q, which is not the name of an interface", addr.Zone())
	default:
		return addr.String(), nil
	}
}

// isPublic reports whether other machines can certainly reach a listen address.
// For names other than localhost, and for systemd's sockets, only the open socket
// tells.
func isPublic(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && !addr.Unmap().IsLoopback()
}

// parsePrefix parses a single address or a CIDR prefix. If it fails it returns
// what is wrong, and what to do.
func parsePrefix(s string) (p netip.Prefix, what, hint string) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), "", ""
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, fmt.Sprintf("%q is not an IP address or network", s), `write "192.0.2.1", "192.0.2.0/24" or "2001:db8::/32"`
	case p.Addr().Is4In6():
		return p, fmt.Sprintf("%q is an IPv4 network in IPv6 notation", s), "write it as IPv4"
	case p != p.Masked():
		return p, fmt.Sprintf("%q has bits set after its first %d", s, p.Bits()), fmt.Sprintf("write %q", p.Masked())
	}
	return p, "", ""
}

// Overlap reports whether two listen addresses, "host:port" each, cannot both be
// opened: they are the same, or one includes the other, as ":25" and "[::]:25"
// include all addresses with that port. Port 0 gets another port each time.
func Overlap(a, b string) bool {
	if a == b {
		return !strings.HasSuffix(a, ":0")
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	x, y, all := listenIP(hostA), listenIP(hostB), netip.IPv6Unspecified()
	switch {
	case x == all || y == all: // both families
		return true
	case !x.IsValid() || !y.IsValid():
		return strings.EqualFold(hostA, hostB)
	case x.IsUnspecified() || y.IsUnspecified():
		return x.Is4() == y.Is4()
	}
	return x == y
}

// sameHost reports whether two overlapping addresses differ only in spelling.
func sameHost(a, b string) bool {
	hostA, _, _ := net.SplitHostPort(a)
	hostB, _, _ := net.SplitHostPort(b)
	return listenIP(hostA) == listenIP(hostB)
}

// listenIP returns the IP address of a host without a DNS lookup: it is not valid
// for names other than localhost.
func listenIP(host string) netip.Addr {
	switch strings.ToLower(host) {
	case "":
		return netip.IPv6Unspecified()
	case "localhost":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap()
}
