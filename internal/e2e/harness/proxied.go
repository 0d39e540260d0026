package harness

import (
	"fmt"
	"net"
	"net/netip"
)

// AcceptProxy is the key of a listener that takes a PROXY header from every client.
const AcceptProxy = `proxy_protocol = ["127.0.0.0/8"]`

// ProxyAddr is the address from which DialFrom connects if it sends a PROXY header. A
// gate needs it in proxy_protocol.
const ProxyAddr = "127.0.0.1"

// A proxiedConn is a connection that began with a PROXY header.
type proxiedConn struct {
	net.Conn
	as *net.TCPAddr
}

// LocalAddr returns the address in the PROXY header: the one that the gate takes for the
// client's.
func (c proxiedConn) LocalAddr() net.Addr { return c.as }

// DialFrom connects from an address of this machine, or from any if it is "". For any
// other address it connects from ProxyAddr and names the client in a PROXY header,
// because a gate does not limit the connections of loopback.
func DialFrom(addr, from string) (net.Conn, error) {
	d := net.Dialer{Timeout: ReplyTimeout}
	ip, err := netip.ParseAddr(from)
	told := err == nil && !ip.IsLoopback()
	if told {
		from = ProxyAddr
	}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := d.Dial("tcp", addr)
	if err != nil || !told {
		return conn, err
	}
	as := netip.AddrPortFrom(ip, uint16(conn.LocalAddr().(*net.TCPAddr).Port))
	family, to := "TCP4", "198.51.100.25"
	if ip.Is6() {
		family, to = "TCP6", "2001:db8::25"
	}
	if _, err := fmt.Fprintf(conn, "PROXY %s %s %s %d 25\r\n", family, ip, to, as.Port()); err != nil {
		conn.Close()
		return nil, err
	}
	return proxiedConn{conn, net.TCPAddrFromAddrPort(as)}, nil
}
