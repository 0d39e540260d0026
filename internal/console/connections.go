package console

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Connections bounds the connections of a server. Strangers cannot keep users out by holding
// all of them: beyond the bound, the oldest connection is closed of those that do not just
// answer somebody with an account.
type Connections struct {
	most int

	mu   sync.Mutex
	open map[*connection]bool
	last uint64
}

// NewConnections returns Connections of which at most so many are open.
func NewConnections(most int) *Connections {
	return &Connections{most: most, open: map[*connection]bool{}}
}

// connection is one that is open.
type connection struct {
	net.Conn
	of     *Connections
	number uint64 // in the order in which they came
	held   int    // answers to somebody with an account; guarded by of.mu
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Listener returns a listener whose connections are among these.
func (c *Connections) Listener(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener
	of *Connections
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.of.add(conn), nil
}

// add adds a connection. If there are too many, one is closed: the new one if all others are
// held.
func (c *Connections) add(conn net.Conn) *connection {
	c.mu.Lock()
	c.last++
	one := &connection{Conn: conn, of: c, number: c.last}
	c.open[one] = true
	var surplus *connection
	if len(c.open) > c.most {
		for o := range c.open {
			if o.held == 0 && (surplus == nil || o.number < surplus.number) {
				surplus = o
			}
		}
		delete(c.open, surplus)
	}
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Conn.Close() // who has it is told by that
	}
	return one
}

type connectionKey struct{}

// Context returns the context of a connection's requests, for http.Server.ConnContext.
func (c *Connections) Context(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// hold keeps the connection of a request from being closed until release.
func hold(r *http.Request) (release func()) {
	conn, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	count := func(n int) {
		conn.of.mu.Lock()
		defer conn.of.mu.Unlock()
		conn.held += n
	}
	count(1)
	return func() { count(-1) }
}
