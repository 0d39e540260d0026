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

var errNoDomain = errors.New("is not a domain name")

// maxLabel is from RFC 1035, section 2.3.4.
const maxLabel = 63

// domainName normalises a domain name as sender addresses are normalised, so
// that both compare byte by byte. It is stricter: beyond letters, digits and
// hyphens only "_" passes, since names with it are in use. The error, like the
// others here, completes a sentence that begins with the value.
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

// mailDomain is domainName, or an address literal in its normal form.
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
		return "", errors.New("is an address, which stands in brackets here")
	}
	if err != nil {
		return "", err
	}
	for label := range strings.SplitSeq(name, ".") {
		if strings.Contains(label, "_") || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return "", fmt.Errorf("is no host name: its part %q is not made of letters, digits and inner hyphens", label)
		}
	}
	return name, nil
}

// addressLiteral takes what follows the opening bracket.
func addressLiteral(inner string) (string, error) {
	inner, ok := strings.CutSuffix(inner, "]")
	text, tagged := inner, false
	if len(inner) > 5 && strings.EqualFold(inner[:5], "IPv6:") {
		text, tagged = inner[5:], true
	}
	addr, err := netip.ParseAddr(text)
	if !ok || err != nil || addr.Zone() != "" || addr.Is6() != tagged {
		return "", errors.New(`is no address literal: they look like "[192.0.2.1]" and "[IPv6:2001:db8::1]"`)
	}
	if tagged {
		return "[IPv6:" + addr.String() + "]", nil
	}
	return "[" + addr.String() + "]", nil
}

// checkListen checks one address to listen on.
func checkListen(s string) error {
	if s == Systemd {
		return nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("is not of the form host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("has the port %q, which is no number from 0 to 65535", port)
	} else if strconv.FormatUint(n, 10) != port {
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

// zoneName is a zone (RFC 4007, section 11) that cannot be taken for what comes
// behind it.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// normalHost normalises a domain name or an IP address.
func normalHost(host string) (string, error) {
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return domainName(host)
	case addr.Zone() != "" && !zoneName.MatchString(addr.Zone()):
		return "", fmt.Errorf("has the zone %q, which is no name of an interface", addr.Zone())
	default:
		return addr.String(), nil
	}
}

// isPublic reports whether an address to listen on is certainly reachable from
// other machines. Other names than localhost, and systemd's sockets, are only
// known once they are open.
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

// parsePrefix reads a single address or a CIDR prefix. Where it is neither, it
// says what is wrong and what to do.
func parsePrefix(s string) (p netip.Prefix, what, hint string) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), "", ""
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, fmt.Sprintf("%q is no IP address or network", s), `write "192.0.2.1", "192.0.2.0/24" or "2001:db8::/32"`
	case p.Addr().Is4In6():
		return p, fmt.Sprintf("%q is an IPv4 network in IPv6 notation", s), "write it as IPv4"
	case p != p.Masked():
		return p, fmt.Sprintf("%q has bits set behind its /%d", s, p.Bits()), fmt.Sprintf("write %q", p.Masked())
	}
	return p, "", ""
}
