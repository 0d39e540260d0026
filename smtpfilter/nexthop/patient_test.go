package nexthop

import (
	"bytes"
	"context"
	"net"
	"time"
)

// patientConn is a connection on which no deadline holds before bytes were sent
// that begin in a certain way. What a test wants to be answered may take as long as
// it takes then, however short the time for what is not to be answered.
type patientConn struct {
	net.Conn
	from     []byte
	sent     bool
	deadline time.Time // for reading, while it does not hold
}

// dialPatient dials a patientConn, quoted as in Go.
func dialPatient(from string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
		return &patientConn{Conn: c, from: []byte(from)}, err
	}
}

func (c *patientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if !c.sent && bytes.HasPrefix(p, c.from) {
		c.sent = true
		c.Conn.SetReadDeadline(c.deadline)
	}
	return n, err
}

func (c *patientConn) SetDeadline(d time.Time) error {
	c.SetWriteDeadline(d)
	return c.SetReadDeadline(d)
}

func (c *patientConn) SetReadDeadline(d time.Time) error {
	if c.sent {
		return c.Conn.SetReadDeadline(d)
	}
	c.deadline = d
	return nil
}

func (c *patientConn) SetWriteDeadline(d time.Time) error {
	if c.sent {
		return c.Conn.SetWriteDeadline(d)
	}
	return nil
}
