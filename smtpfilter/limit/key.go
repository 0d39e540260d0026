package limit

import (
	"encoding/binary"
	"net/netip"
)

// key is a client or a network.
type key struct {
	prefix uint64 // an IPv4 address, or the first half of an IPv6 address
	kind   kind
}

// kind distinguishes keys with the same prefix. It is as wide as the prefix because a
// map hashes a key without padding in one step.
type kind uint64

const (
	client4 kind = iota
	network4
	client6
	network6
)

// keysOf returns the keys of a client and its network. The address must be valid.
func keysOf(addr netip.Addr) (client, network key) {
	if addr.Is4() || addr.Is4In6() {
		a := addr.As4()
		p := uint64(binary.BigEndian.Uint32(a[:]))
		return key{p, client4}, key{p &^ 0xff, network4}
	}
	a := addr.As16()
	p := binary.BigEndian.Uint64(a[:8])
	return key{p, client6}, key{p &^ 0xffff, network6}
}
