package wire

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
)

// open does what comes before the greeting, in the goroutine of the connection,
// and returns the first reply: the greeting, or a refusal. Where the client does
// not begin as it must, the connection has ended without a word.
//
// The order is fixed: the header of the PROXY protocol, Config.Connected, TLS where
// the connection begins with it, and the wait for GreetingDelay. Whoever has too many
// connections is turned away before the handshake, which costs the gate more than the
// client and may be left half done; under TLS that means without a word.
func (c *Conn) open() Reply {
	c.peer, c.local = SocketAddr(c.Conn.RemoteAddr()), SocketAddr(c.Conn.LocalAddr())
	if contains(c.cfg.ProxySources, c.peer.Addr()) && !c.readProxyHeader() {
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
	return c.holdBack()
}

// greeting is the first reply of a session.
func (c *Conn) greeting() Reply { return NewReply(220, Greeting(c.cfg.Hostname)) }

// Greeting returns the text with which a gate of a name greets.
func Greeting(hostname string) string { return hostname + " ESMTP spamgate" }

// refusal asks Config.Connected about the client. Where it is refused, the reply
// is the session's last.
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

// holdBack waits for GreetingDelay and returns the greeting, or where the client
// has not waited and that is not tolerated, 554 5.5.0.
func (c *Conn) holdBack() Reply {
	early, err := c.talksEarly()
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

// talksEarly reports whether the client has said something within GreetingDelay,
// or where there is none, has said something already.
func (c *Conn) talksEarly() (bool, error) {
	if len(c.in.bytes()) > 0 {
		return true, nil
	}
	if c.cfg.GreetingDelay <= 0 {
		if c.tls != nil || c.cfg.Noticed == nil && !c.cfg.RejectPregreet {
			return false, nil
		}
		early, _ := Pending(c.Conn) // a read will find the error, too
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
		return plainAddr(a.AddrPort())
	}
	return netip.AddrPort{}
}

// plainAddr is an address without what does not belong to it: an IPv4 client is
// one on a socket for both families, too, and a zone says which of our
// interfaces it came by.
func plainAddr(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
