package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NextHop says where accepted mail goes.
type NextHop struct {
	// Addr holds one or more next hops without duplicates, the preferred one
	// first: "smtp://host:port", "smtps://host:port" (TLS from the first byte),
	// "lmtp://host:port", or "lmtp+unix:" and the absolute path of a socket. The
	// port is always present, the host in lower case. SMTP and LMTP are never
	// mixed. A "maildir:" with an absolute directory is the only element.
	Addr Addresses `toml:"addr"`

	Reuse    bool   `toml:"reuse"`                                // keep connections for further messages
	Chunking bool   `toml:"chunking"`                             // send what came by DATA as a chunk, where that is offered
	Balance  string `toml:"balance" oneof:"priority,round_robin"` // priority: the first that works

	// Merge is a key of earlier versions. It has no effect and is always false;
	// Warnings mentions it.
	Merge bool `toml:"merge"`

	// Identity says how the next hop learns who the client is; see the package
	// nexthop. Proxy is the version of the PROXY protocol to the next hop, or empty.
	Identity string `toml:"identity" oneof:"auto,xclient,xforward,none"`
	Proxy    string `toml:"proxy" oneof:",v1,v2"`

	// TLS is "none", "opportunistic" or "required": the use of STARTTLS. It does
	// not apply to "smtps://", and is "none" for unix sockets.
	TLS string `toml:"tls"`

	// TLSCA is the absolute path of a PEM file with the authorities to trust;
	// empty: the system's. TLSCA, TLSName and TLSPins are set only if
	// certificates are verified: with TLS "required" or "smtps://".
	TLSCA string `toml:"tls_ca"`

	TLSName string `toml:"tls_name"` // the name in the certificate; empty: the host of Addr

	// TLSPins holds SHA-256 sums of public keys, 64 lower-case hexadecimal digits
	// each. They exclude a TLSCA.
	TLSPins []string `toml:"tls_pins"`

	// ProbeInterval is the time between two probes of what the next hop offers.
	ProbeInterval time.Duration `toml:"probe_interval" range:"1s,1h"`

	// ConnectTimeout bounds the wait for a connection, for the greeting and for
	// the reply to EHLO, each.
	ConnectTimeout time.Duration `toml:"connect_timeout" range:"1s,5m"`

	// ReplyTimeout bounds the wait for the reply to any other command, but not to
	// a message.
	ReplyTimeout time.Duration `toml:"reply_timeout" range:"1s,10m"`

	// MessagesPerConnection bounds the messages of one connection. 0: the package
	// nexthop chooses by the server.
	MessagesPerConnection int64 `toml:"messages_per_connection" range:"0,1000000"`

	AllowPublic bool `toml:"allow_public"` // permit a public listener before a Maildir
}

// The schemes of NextHop.Addr.
const (
	schemeMaildir  = "maildir:"
	schemeSMTP     = "smtp://"
	schemeSMTPS    = "smtps://"
	schemeLMTP     = "lmtp://"
	schemeLMTPUnix = "lmtp+unix:"
)

// tcpSchemes are those with a host, and their default ports.
var tcpSchemes = []struct{ scheme, port string }{
	{schemeSMTP, "25"},
	{schemeSMTPS, "465"},
	{schemeLMTP, "24"},
}

// Maildir returns the directory if the next hop is a Maildir.
func (n NextHop) Maildir() (dir string, ok bool) {
	if len(n.Addr) != 1 {
		return "", false
	}
	return strings.CutPrefix(n.Addr[0], schemeMaildir)
}

// TCP returns "host:port" of each next hop over TCP, with any protocol.
func (n NextHop) TCP() []string {
	var hostports []string
	for _, addr := range n.Addr {
		for _, s := range tcpSchemes {
			if hostport, ok := strings.CutPrefix(addr, s.scheme); ok {
				hostports = append(hostports, hostport)
			}
		}
	}
	return hostports
}

// has reports whether the address of a next hop begins with scheme.
func (n NextHop) has(scheme string) bool {
	return slices.ContainsFunc(n.Addr, func(addr string) bool { return strings.HasPrefix(addr, scheme) })
}

// unprotected returns a next hop to which passwords could travel in clear text:
// one on another machine without TLS, or with TLS that an attacker can disable.
// Only localhost and loopback addresses are certainly this machine.
func (n NextHop) unprotected() (addr string, ok bool) {
	for _, addr := range n.Addr {
		hostport, plain := strings.CutPrefix(addr, schemeSMTP)
		host, _, err := net.SplitHostPort(hostport)
		if plain && n.TLS != "required" && err == nil && !isLoopback(host) {
			return addr, true
		}
	}
	return "", false
}

// LMTP reports whether the next hop speaks LMTP.
func (n NextHop) LMTP() bool { return n.has("lmtp") }

// protocol returns the protocol of an address.
func protocol(addr string) string {
	switch {
	case strings.HasPrefix(addr, schemeMaildir):
		return "a Maildir"
	case strings.HasPrefix(addr, schemeSMTP), strings.HasPrefix(addr, schemeSMTPS):
		return "SMTP"
	default:
		return "LMTP"
	}
}

// errNextHopUser is the error of "smtp://USER:PASSWORD@HOST".
var errNextHopUser = errors.New("has a user before the host, which is not shown here: the gate does not log in")

// normalNextHop checks one address of a next hop, and adds a missing port.
func normalNextHop(s string) (string, error) {
	if dir, ok := strings.CutPrefix(s, schemeMaildir); ok {
		if dir == "" || strings.HasPrefix(dir, "//") {
			return "", errors.New("does not name a directory")
		}
		return s, nil
	}
	if path, ok := strings.CutPrefix(s, schemeLMTPUnix); ok {
		switch {
		case path == "":
			return "", errors.New("does not name a socket")
		case strings.HasPrefix(path, "//"):
			return "", errors.New("has more than one slash before its path")
		}
		return s, nil
	}
	for _, known := range tcpSchemes {
		if rest, ok := strings.CutPrefix(s, known.scheme); ok {
			if strings.Contains(rest, "@") {
				return "", errNextHopUser
			}
			hostport, err := normalHostPort(strings.TrimSuffix(rest, "/"), known.port)
			return known.scheme + hostport, err
		}
	}
	return "", errors.New("is not a supported next hop")
}

// normalHostPort normalises a host with or without a port.
func normalHostPort(s, defaultPort string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil { // no port, or nonsense, which the checks below refuse
		host, port = s, defaultPort
		if inner, ok := strings.CutPrefix(s, "["); ok {
			host = strings.TrimSuffix(inner, "]")
		} else if _, err := netip.ParseAddr(s); err == nil && strings.Contains(s, ":") {
			return "", errors.New("has an IPv6 address without brackets")
		}
	}
	n, err := parsePort(port, 1)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "", errors.New("does not name a host")
	}
	name, err := normalHost(host)
	if err != nil {
		return "", fmt.Errorf("has the host %q, which %w", host, err)
	}
	return net.JoinHostPort(name, strconv.FormatUint(n, 10)), nil
}

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
		pos := slices.IndexFunc(hops, func(h Hop) bool { return reflect.DeepEqual(h.NextHop, n) })
		if pos < 0 {
			pos = len(hops)
			hops = append(hops, Hop{NextHop: n, file: c, path: c.hopPath(i)})
		}
		hops[pos].Listeners = append(hops[pos].Listeners, i)
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
	if pos, err := h.file.positions(); err == nil {
		return element(pos.hopAddr(h.path), i)
	}
	return element(addr, i)
}

// Key returns the path of a key: in the next hop's own table or, if that does not set the
// key, in [next_hop].
func (h Hop) Key(key string) string {
	own := h.path + "." + key
	if pos, err := h.file.positions(); err == nil && !pos.has(own) {
		return "next_hop." + key
	}
	return own
}

// hopAddr returns the path of the addresses of a next hop: those of a [[listener]] may
// stand without a table, or be those of [next_hop].
func (p positions) hopAddr(path string) string {
	switch {
	case p.has(path + ".addr"):
		return path + ".addr"
	case path != "next_hop" && !p.isTable(path):
		return path
	default:
		return "next_hop.addr"
	}
}

// isTable reports whether the path is that of a table with keys.
func (pos positions) isTable(path string) bool {
	for p := range pos {
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
