package nexthoptest

import (
	"net"
	"testing"
)

// Unreachable is a host and port where nobody listens. Until the test ends nobody
// else can: the port is that of a connection's other end.
func Unreachable(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	// The address is given, so that the port is bound and never that of somebody
	// who connects to it.
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := from.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String()
}
