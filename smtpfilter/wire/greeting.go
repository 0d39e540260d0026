package wire

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
)

// opening is the begin of a connection, up to its first reply.
type opening struct{ c *Conn }

// open prepares the connection and returns the first reply: the greeting, or a
// refusal. If the client does not begin as it must, the connection ends without a
// reply.
//
// The order is: the PROXY header, Config.Connected, implicit TLS, and the wait for
// GreetingDelay. A client with too many connections is refused before the handshake,
// which costs the gate more than the client. With implicit TLS that means without a
// reply.
func (o opening) open() Reply {
	c := o.c
	c.peer, c.local = SocketAddr(c.Conn.RemoteAddr()), SocketAddr(c.Conn.LocalAddr())
	if contains(c.cfg.ProxySources, c.peer.Addr()) && !o.readProxyHeader() {
		c.ended = true
		return Reply{}
	}
	refusal := c.refusal()
	c.turnedAway = !refusal.IsZero()
	if c.cfg.TLSMode == TLSImplicit {
		if !refusal.IsZero() || c.cfg.TLS == nil || !c.handshake() {
			c.ended = true
			return Reply{}
		}
	}
	if !refusal.IsZero() {
		return refusal
	}
	return o.delayGreeting()
}

// greeting returns the first reply of a session.
func (c *Conn) greeting() Reply { return NewReply(220, Greeting(c.cfg.Hostname)) }

// Greeting returns the text of the greeting of a gate.
func Greeting(hostname string) string { return hostname + " ESMTP spamgate" }

// refusal calls Config.Connected. A refusal is the last reply of the session.
func (c *Conn) refusal() Reply {
	if c.cfg.Connected == nil {
		return Reply{}
	}
	r := c.cfg.Connected(c)
	if !r.IsZero() {
		c.fault, c.last = r, true
	}
	return r
}

// delayGreeting waits for GreetingDelay and returns the greeting, or 554 5.5.0 if the
// client did not wait and RejectPregreet is set.
func (o opening) delayGreeting() Reply {
	c := o.c
	early, err := o.pregreets()
	switch {
	case errors.Is(err, errInterrupted):
		c.fault, c.last = c.shuttingDown(), true
		return c.fault
	case err != nil:
		c.ended = true
		return Reply{}
	case !early:
		return c.greeting()
	}
	c.notice("talks before the greeting")
	if !c.cfg.RejectPregreet {
		return c.greeting()
	}
	c.fault, c.last = NewReply(554, "5.5.0 Wait for the greeting before you talk"), true
	return c.fault
}

// pregreets reports whether the client sends something within GreetingDelay, or
// without a delay, has sent something already.
func (o opening) pregreets() (bool, error) {
	c := o.c
	if len(c.in.bytes()) > 0 {
		return true, nil
	}
	if c.cfg.GreetingDelay <= 0 {
		if c.tls != nil || c.cfg.Noticed == nil && !c.cfg.RejectPregreet {
			return false, nil
		}
		early, _ := Pending(c.Conn) // an error shows at the next read
		return early, nil
	}
	err := c.fill(c.cfg.GreetingDelay)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// SocketAddr returns the address of a TCP socket, and the zero AddrPort for others.
func SocketAddr(a net.Addr) netip.AddrPort {
	if a, ok := a.(*net.TCPAddr); ok {
		return PlainAddr(a.AddrPort())
	}
	return netip.AddrPort{}
}

// PlainAddr returns an address without its zone, and an IPv4 address on a socket for
// both families as IPv4.
func PlainAddr(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
