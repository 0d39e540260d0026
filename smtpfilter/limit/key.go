package limit

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
)

// key is a client, a network or a login.
type key struct {
	prefix uint64 // an IPv4 address, the first half of an IPv6 address, or a LoginID
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
	login
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

// LoginID stands for a login; 0 is none. It says nothing of the login's name outside this
// process.
type LoginID uint64

var loginSeed = maphash.MakeSeed()

// LoginOf returns the LoginID of a name. Two names have the same one with a probability of
// 2^-64.
func LoginOf(name string) LoginID { return LoginID(max(1, maphash.String(loginSeed, name))) }
