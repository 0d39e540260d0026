package config

import (
	"net"
	"net/netip"
	"strings"
)

// Overlap reports whether two addresses, "host:port" each, cannot be listened on at
// the same time.
func Overlap(a, b string) bool { return overlap(a, b) }

// overlap reports whether two addresses cannot be listened on at the same time:
// they are the same, or one of them is every address with that port. ":25" and
// "[::]:25" include those of IPv4. Two of port 0 get two ports.
func overlap(a, b string) bool {
	if a == b {
		return !strings.HasSuffix(a, ":0")
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	x, y := listenIP(hostA), listenIP(hostB)
	switch {
	case isEvery(x) || isEvery(y):
		return true
	case !x.IsValid() || !y.IsValid(): // names are not known before they are resolved
		return strings.EqualFold(hostA, hostB)
	case x.IsUnspecified() || y.IsUnspecified():
		return x.Is4() == y.Is4()
	}
	return x == y
}

// sameHost reports whether two addresses that overlap are one, written in two ways.
func sameHost(a, b string) bool {
	hostA, _, _ := net.SplitHostPort(a)
	hostB, _, _ := net.SplitHostPort(b)
	return listenIP(hostA) == listenIP(hostB)
}

// isEvery reports whether an address stands for all of both families.
func isEvery(a netip.Addr) bool { return a == netip.IPv6Unspecified() }

// listenIP is the IP address that a host stands for as far as that is known without
// asking; else it is not valid.
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
