package config

import (
	"net"
	"net/netip"
	"strings"
)

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
