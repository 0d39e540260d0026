package config

import (
	"reflect"
	"slices"
	"strings"
)

// Hop is a next hop in use.
type Hop struct {
	NextHop

	// Listeners are the indexes of the listeners whose mail goes there.
	Listeners []int

	file *Config
	path string // of its table
}

// Hops returns the next hops of all listeners, each once.
func (c *Config) Hops() []Hop {
	var hops []Hop
	for i, l := range c.Listeners {
		n := c.HopOf(l)
		at := slices.IndexFunc(hops, func(h Hop) bool { return reflect.DeepEqual(h.NextHop, n) })
		if at < 0 {
			at = len(hops)
			hops = append(hops, Hop{NextHop: n, file: c, path: c.hopPath(i)})
		}
		hops[at].Listeners = append(hops[at].Listeners, i)
	}
	return hops
}

// HopOf returns the next hop of a listener.
func (c *Config) HopOf(l Listener) NextHop {
	if l.NextHop != nil {
		return *l.NextHop
	}
	return c.NextHop
}

// HopAddrs returns the addresses of all next hops, each once.
func (c *Config) HopAddrs() []string {
	var addrs []string
	for _, h := range c.Hops() {
		for _, addr := range h.Addr {
			if !slices.Contains(addrs, addr) {
				addrs = append(addrs, addr)
			}
		}
	}
	return addrs
}

// hopPath returns the path of the table with the next hop of Listeners[i].
func (c *Config) hopPath(i int) string {
	if c.Listeners[i].NextHop == nil {
		return "next_hop"
	}
	return element("listener", c.tableOf(i)) + ".next_hop"
}

// AddrKey returns the path of the i-th address.
func (h Hop) AddrKey(i int) string {
	addr := h.path + ".addr"
	if at, err := h.file.positions(); err == nil {
		return element(at.hopAddr(h.path), i)
	}
	return element(addr, i)
}

// Key returns the path of a key: in the next hop's own table or, if that does not set the
// key, in [next_hop].
func (h Hop) Key(key string) string {
	own := h.path + "." + key
	if at, err := h.file.positions(); err == nil && !at.has(own) {
		return "next_hop." + key
	}
	return own
}

// hopAddr returns the path of the addresses of a next hop: those of a [[listener]] may
// stand without a table, or be those of [next_hop].
func (at positions) hopAddr(path string) string {
	switch {
	case at.has(path + ".addr"):
		return path + ".addr"
	case path != "next_hop" && !at.isTable(path):
		return path
	default:
		return "next_hop.addr"
	}
}

// isTable reports whether the path is that of a table with keys.
func (at positions) isTable(path string) bool {
	for p := range at {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// resolve makes the paths absolute.
func (n *NextHop) resolve(abs func(string) string) {
	n.TLSCA = abs(n.TLSCA)
	for i, addr := range n.Addr {
		for _, scheme := range []string{schemeMaildir, schemeLMTPUnix} {
			if path, ok := strings.CutPrefix(addr, scheme); ok {
				n.Addr[i] = scheme + abs(path)
			}
		}
	}
}
