// Package nexthoptest has next hops for tests, on real sockets on loopback.
//
// A Sink is an SMTP server that takes every message and keeps its bytes
// exactly as they came; Config makes it refuse, stay silent or cut the
// connection at any step. A Script plays a dialogue word by word and reports
// every byte that differs from what it expects.
//
// Both end with the test that started them: its cleanup closes the listener and
// every connection, and waits for their goroutines.
package nexthoptest

import (
	"errors"
	"net"
	"time"
)

// Directives that stand in place of a reply, or as its last line.
const (
	// Cut closes the connection with a FIN.
	Cut = "[cut]"

	// Reset closes the connection with a RST.
	Reset = "[reset]"

	// Silence sends nothing more, and reads and drops whatever comes until
	// the client closes the connection.
	Silence = "[silence]"
)

// waitLimit is how long a Wait method waits before it fails the test. It is
// only reached when something hangs.
const waitLimit = 20 * time.Second

// errEnded says that a directive ended the connection.
var errEnded = errors.New("connection ended by the test")

// reset closes c such that the peer gets a RST.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
