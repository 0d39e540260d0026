package world

import (
	"io"
	"net"
	"sync"
	"time"
)

// A memoryConn is the server's end of a connection in memory. Its client says something, and waits
// until the server has read all of it and wants more. So what comes of it depends on what was said,
// and not on when, and whatever the server has to say is there.
type memoryConn struct {
	mu      sync.Mutex
	changed sync.Cond
	in, out []byte // to the server, and from it
	left    bool   // the client has gone
	waiting bool   // the server waits for more
	closed  bool
}

func (c *memoryConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.in) == 0 {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.left:
			return 0, io.EOF
		}
		c.waiting = true
		c.changed.Signal()
		c.changed.Wait()
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *memoryConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.out = append(c.out, p...)
	return len(p), nil
}

func (c *memoryConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.changed.Signal()
	return nil
}

// say sends something, and returns what the server says until it waits for more or closes.
func (c *memoryConn) say(text string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in, c.waiting = append(c.in, text...), false
	return c.listen()
}

// hangUp closes the client's end, and returns what the server says until it closes its own.
func (c *memoryConn) hangUp() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.waiting = true, false
	return c.listen()
}

func (c *memoryConn) listen() string {
	c.changed.Signal()
	for !c.waiting && !c.closed {
		c.changed.Wait()
	}
	said := string(c.out)
	c.out = c.out[:0]
	return said
}

func (c *memoryConn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 25}

func (*memoryConn) LocalAddr() net.Addr              { return loopback }
func (*memoryConn) RemoteAddr() net.Addr             { return loopback }
func (*memoryConn) SetDeadline(time.Time) error      { return nil }
func (*memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (*memoryConn) SetWriteDeadline(time.Time) error { return nil }

// A memoryListener accepts connections in memory.
type memoryListener chan net.Conn

func (l memoryListener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l memoryListener) Close() error { close(l); return nil }
func (memoryListener) Addr() net.Addr { return loopback }

// dial connects, and returns what the server says first.
func (l memoryListener) dial() (*memoryConn, string) {
	c := &memoryConn{}
	c.changed.L = &c.mu
	l <- c
	return c, c.say("")
}
