package wire_test

import (
	"net"
	"sync/atomic"
	"testing"

	"spamgate/smtpfilter/wire"
)

// TestTurnedAway refuses clients at once that go on to hold their connections: they
// hold nothing of the gate's, for no limit counts them.
func TestTurnedAway(t *testing.T) {
	for _, setUp := range []string{"tls offered", "tls implicit"} {
		g := newTestGate(t)
		g.mustSetUp(t, setUp, "refuse 127.0.0.1 421 4.7.0 too many connections")
		closed := make(chan bool)
		g.cfg.Closed = func(*wire.Conn) { close(closed) }
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := &halfClosing{Listener: tcp}
		g.serve(t, l)
		g.dial(t)
		<-closed
		if n := l.halves.Load(); n != 0 {
			t.Errorf("%s: the gate has waited for the client to close", setUp)
		}
	}
}

// halfClosing counts the connections that are closed for writing alone.
type halfClosing struct {
	net.Listener
	halves atomic.Int32
}

func (l *halfClosing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return halfClosed{c, l}, nil
}

type halfClosed struct {
	net.Conn
	l *halfClosing
}

func (c halfClosed) CloseWrite() error {
	c.l.halves.Add(1)
	return c.Conn.(*net.TCPConn).CloseWrite()
}
