package nexthop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// endpoints are the two ends of a client's connection to us.
type endpoints struct{ from, to netip.AddrPort }

// endpointsOf are a client's endpoints as the PROXY header tells them; zero for
// nil, which is ourselves. Both have an address of one family, and a port.
//
// A client whose address is not known must not look like ourselves, whom the
// next hop may trust: it is nobody, 0.0.0.0.
func endpointsOf(client *Client) endpoints {
	if client == nil {
		return endpoints{}
	}
	from := plainAddr(client.Addr.Addr())
	if !from.IsValid() {
		from = netip.IPv4Unspecified()
	}
	to := plainAddr(client.Local.Addr())
	if to.Is4() != from.Is4() || !to.IsValid() {
		to = netip.IPv4Unspecified()
		if from.Is6() {
			to = netip.IPv6Unspecified()
		}
	}
	return endpoints{
		netip.AddrPortFrom(from, somePort(client.Addr.Port())),
		netip.AddrPortFrom(to, somePort(client.Local.Port())),
	}
}

// plainAddr is an address without what only this machine knows.
func plainAddr(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// somePort stands in for an unknown port, because servers refuse a zero.
func somePort(port uint16) uint16 {
	if port == 0 {
		return 25
	}
	return port
}

// errProxied is wrapped by the errors about a connection that was refused after it
// had been told its client.
var errProxied = errors.New("in the client's name")

// blameClient marks a refusal, in the greeting or of EHLO, that may be meant for the
// client which the PROXY header has named.
func (c *conn) blameClient(err error) error {
	var refused *ReplyError
	if c.proxied != (endpoints{}) && errors.As(err, &refused) {
		refused.Err = fmt.Errorf("%w: %w", errProxied, refused.Err)
	}
	return err
}

// sendProxyHeader sends the header that a connection begins with.
func (s *SMTP) sendProxyHeader(c *conn, client *Client) error {
	c.proxied = endpointsOf(client)
	var header []byte
	switch {
	case s.config.Proxy == 2:
		header = proxyHeader2(c.proxied)
	case client == nil:
		// Postfix knows no UNKNOWN, so we are our own client.
		header = proxyHeader1(endpoints{addrPort(c.socket.LocalAddr()), addrPort(c.socket.RemoteAddr())})
	default:
		header = proxyHeader1(c.proxied)
	}
	_, err := c.Write(header)
	return err
}

// addrPort is a TCP address; zero for another.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(plainAddr(ap.Addr()), ap.Port())
}

// proxyHeader1 is the header in version 1 of the PROXY protocol (HAProxy's
// proxy-protocol.txt, section 2.1).
func proxyHeader1(e endpoints) []byte {
	if !e.from.IsValid() || !e.to.IsValid() {
		return []byte("PROXY UNKNOWN\r\n")
	}
	family := "TCP6"
	if e.from.Addr().Is4() {
		family = "TCP4"
	}
	return fmt.Appendf(nil, "PROXY %s %s %s %d %d\r\n", family, e.from.Addr(), e.to.Addr(), e.from.Port(), e.to.Port())
}

// What version 2 has in its header (section 2.2).
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyLocal     = 0x20 // version 2, the proxy speaks for itself
	proxyClient    = 0x21 // version 2, the proxy speaks for a client
	proxyTCP4      = 0x11
	proxyTCP6      = 0x21
)

// proxyHeader2 is the header in version 2; LOCAL for the zero endpoints.
func proxyHeader2(e endpoints) []byte {
	header := []byte(proxySignature)
	if e == (endpoints{}) {
		return append(header, proxyLocal, 0, 0, 0)
	}
	family := byte(proxyTCP6)
	if e.from.Addr().Is4() {
		family = proxyTCP4
	}
	from, to := e.from.Addr().AsSlice(), e.to.Addr().AsSlice()
	header = append(header, proxyClient, family)
	header = binary.BigEndian.AppendUint16(header, uint16(len(from)+len(to)+4))
	header = append(append(header, from...), to...)
	header = binary.BigEndian.AppendUint16(header, e.from.Port())
	return binary.BigEndian.AppendUint16(header, e.to.Port())
}
