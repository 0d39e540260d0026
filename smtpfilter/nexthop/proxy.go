package nexthop

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"spamgate/smtpfilter/wire"
)

// endpoints are the two ends of a client's connection to us.
type endpoints struct{ from, to netip.AddrPort }

// endpointsOf returns a client's endpoints as the PROXY header has them: both with
// an address of one family, and a port. It returns zero for nil, which is ourselves.
//
// The next hop may trust us, so a client with an unknown address must not look like
// us: it is 0.0.0.0.
func endpointsOf(client *Client) endpoints {
	if client == nil {
		return endpoints{}
	}
	from := wire.PlainAddr(client.Addr).Addr()
	if !from.IsValid() {
		from = netip.IPv4Unspecified()
	}
	to := wire.PlainAddr(client.Local).Addr()
	if to.Is4() != from.Is4() || !to.IsValid() {
		to = netip.IPv4Unspecified()
		if from.Is6() {
			to = netip.IPv6Unspecified()
		}
	}
	const unknownPort = 25 // servers refuse 0
	return endpoints{
		netip.AddrPortFrom(from, cmp.Or(client.Addr.Port(), unknownPort)),
		netip.AddrPortFrom(to, cmp.Or(client.Local.Port(), unknownPort)),
	}
}

// errProxied is wrapped by the errors for a connection that was refused after the
// PROXY header had named its client.
var errProxied = errors.New("in the client's name")

// markProxied adds errProxied to a refusal, in the greeting or of EHLO: it may be
// meant for the client that the PROXY header has named.
func (c *conn) markProxied(err error) error {
	var refused *ReplyError
	if c.proxied != (endpoints{}) && errors.As(err, &refused) {
		refused.Err = fmt.Errorf("%w: %w", errProxied, refused.Err)
	}
	return err
}

// sendProxyHeader sends the header that a connection begins with.
func (s *server) sendProxyHeader(c *conn, client *Client) error {
	c.proxied = endpointsOf(client)
	ends := c.proxied
	if client == nil && s.config.Proxy == 1 {
		// Postfix does not accept UNKNOWN, so we are our own client.
		ends = endpoints{wire.SocketAddr(c.socket.LocalAddr()), wire.SocketAddr(c.socket.RemoteAddr())}
	}
	_, err := proxyHeader(s.config.Proxy, ends).WriteTo(c)
	return err
}

// proxyHeader returns the PROXY header of a version: UNKNOWN or LOCAL for the zero
// endpoints.
func proxyHeader(version int, e endpoints) *proxyproto.Header {
	header := &proxyproto.Header{Version: byte(version), Command: proxyproto.LOCAL}
	if e.from.IsValid() && e.to.IsValid() {
		header.Command, header.TransportProtocol = proxyproto.PROXY, proxyproto.TCPv6
		if e.from.Addr().Is4() {
			header.TransportProtocol = proxyproto.TCPv4
		}
		header.SourceAddr, header.DestinationAddr = net.TCPAddrFromAddrPort(e.from), net.TCPAddrFromAddrPort(e.to)
	}
	return header
}
