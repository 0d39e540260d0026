package e2e

import (
	"fmt"
	"net"
	"net/netip"
)

// tellingProxy is the address that clients which a proxy names come from: a gate
// that they connect to has it in proxy_protocol.
const tellingProxy = "127.0.0.1"

// toldConn is a connection of a client that a proxy names.
type toldConn struct {
	net.Conn
	as *net.TCPAddr
}

// LocalAddr returns the address that the gate knows the client by.
func (c toldConn) LocalAddr() net.Addr { return c.as }

// dialAs connects from an address of this machine, "" for any. From another address
// it connects as a client that a proxy names with the PROXY protocol: the gate
// counts the connections of loopback for no client.
func dialAs(addr, from string) (net.Conn, error) {
	d := net.Dialer{Timeout: waitLimit}
	ip, err := netip.ParseAddr(from)
	told := err == nil && !ip.IsLoopback()
	if told {
		from = tellingProxy
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
	return toldConn{conn, net.TCPAddrFromAddrPort(as)}, nil
}
