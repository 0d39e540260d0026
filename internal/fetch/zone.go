package fetch

import (
	"net/netip"
	"regexp"
	"strings"
)

// zone says from where an address can be reached.
type zone int

const (
	public   zone = iota
	private       // the networks of an organisation or a provider
	link          // the network at hand: link-local, multicast, reserved
	loopback      // this machine
)

func (z zone) String() string {
	switch z {
	case loopback:
		return "this machine"
	case link:
		return "a link-local, multicast or reserved address"
	case private:
		return "a private address"
	}
	return "a public address"
}

// reachableFrom reports whether a server in the zone from may redirect to this zone.
func (z zone) reachableFrom(from zone) bool {
	return z == public || from == z || from == loopback
}

// zones has the special addresses (the registries of RFC 6890). Addresses that are not in
// it are public.
var zones = []struct {
	prefix netip.Prefix
	zone   zone
}{
	{netip.MustParsePrefix("0.0.0.0/8"), loopback}, // connecting to 0.0.0.0 reaches this machine
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("::/127"), loopback}, // :: and ::1
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), private}, // of a provider (RFC 6598)
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("198.18.0.0/15"), private},
	{netip.MustParsePrefix("fc00::/7"), private},       // unique local
	{netip.MustParsePrefix("fec0::/10"), private},      // site-local, deprecated
	{netip.MustParsePrefix("64:ff9b:1::/48"), private}, // local translation to IPv4 (RFC 8215)
	{netip.MustParsePrefix("169.254.0.0/16"), link},
	{netip.MustParsePrefix("192.0.0.0/24"), link},
	{netip.MustParsePrefix("224.0.0.0/3"), link}, // multicast, reserved, broadcast
	{netip.MustParsePrefix("fe80::/10"), link},
	{netip.MustParsePrefix("ff00::/8"), link},
}

// embedded has the prefixes of IPv6 addresses that lead to an IPv4 address in them, and
// where in them that is.
var embedded = []struct {
	prefix netip.Prefix
	pos    int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // RFC 6052
	{netip.MustParsePrefix("::/96"), 12},        // RFC 4291, section 2.5.5.1
	{netip.MustParsePrefix("2002::/16"), 2},     // RFC 3056
}

// zoneOfAddr returns the zone of an address.
func zoneOfAddr(a netip.Addr) zone {
	a = a.Unmap().WithZone("")
	for _, z := range zones {
		if z.prefix.Contains(a) {
			return z.zone
		}
	}
	for _, e := range embedded {
		if e.prefix.Contains(a) {
			all := a.As16()
			return zoneOfAddr(netip.AddrFrom4([4]byte(all[e.pos : e.pos+4])))
		}
	}
	return public
}

// oddAddress matches what inet_aton(3), and so a proxy, may read as an IPv4 address:
// 127.1, 2130706433, 0x7f.0.0.1.
var oddAddress = regexp.MustCompile(`(?i)(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$`)

// zoneOf returns the zone of an address or a name. A name that needs a lookup is public.
func zoneOf(host string) zone {
	if a, err := netip.ParseAddr(host); err == nil {
		return zoneOfAddr(a)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || oddAddress.MatchString(host) {
		return loopback
	}
	return public
}
