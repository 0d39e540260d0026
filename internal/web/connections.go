package web

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connections bounds the connections of a server. Strangers cannot keep users out by holding all of
// them: a further one closes the oldest that is idle. If most of them answer, which strangers can
// have them do slowly, it closes the oldest of those. One that is held stays. The same number bounds
// the requests that are answered at once, since HTTP/2 has several of them in a connection.
type connections struct {
	most int

	mu       sync.Mutex
	open     map[*connection]bool
	last     uint64
	requests int // that are answered in these
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[*connection]bool{}}
}

// connection is one that is open.
type connection struct {
	net.Conn
	connections *connections
	number      uint64 // in the order in which they came

	// Guarded by of.mu: the requests that are answered, and the holds of Hold.
	busy, held int
}

// Close closes the connection.
func (c *connection) Close() error {
	c.connections.mu.Lock()
	c.connections.remove(c)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}

// answers counts n more requests that are answered, or fewer. The caller has the lock.
func (c *connection) answers(n int) {
	c.busy += n
	if c.connections.open[c] {
		c.connections.requests += n
	}
}

// remove counts a connection no more, nor its requests, which end by themselves. The caller has
// the lock.
func (c *connections) remove(connection *connection) {
	if c.open[connection] {
		delete(c.open, connection)
		c.requests -= connection.busy
	}
}

type listener struct {
	net.Listener
	connections *connections
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.connections.add(conn), nil
}

// add adds a connection. If there are too many, it closes one.
func (c *connections) add(conn net.Conn) *connection {
	c.mu.Lock()
	c.last++
	added := &connection{Conn: conn, connections: c, number: c.last}
	c.open[added] = true
	var surplus *connection
	if len(c.open) > c.most {
		surplus = c.surplus(added)
		c.remove(surplus)
	}
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Conn.Close() // who has it is told by that
	}
	return added
}

// surplus returns which connection gives way to a new one: the new one if all others are held. A
// quarter of them may be idle even so, or else a new one would be closed before it can ask, by the
// next one of somebody whose others all answer.
func (c *connections) surplus(newest *connection) *connection {
	var idle, busy *connection
	idles := 0
	for o := range c.open {
		switch {
		case o == newest || o.held > 0:
		case o.busy > 0:
			busy = older(busy, o)
		default:
			idle = older(idle, o)
			idles++
		}
	}
	switch {
	case busy != nil && idles < c.most/4, idle == nil && busy != nil:
		return busy
	case idle != nil:
		return idle
	}
	return newest
}

// older returns the connection that came first; a may be nil.
func older(a, b *connection) *connection {
	if a == nil || b.number < a.number {
		return b
	}
	return a
}

type connectionKey struct{}

// context returns the context of a connection's requests, for http.Server.ConnContext.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Hold keeps the connection of a request from being closed until release. It is for those who have
// shown who they are.
func Hold(r *http.Request) (release func()) {
	return count(r, func(c *connection, n int) { c.held += n })
}

// Idle says that a request only waits, so that its connection counts as idle until again.
func Idle(r *http.Request) (again func()) {
	return count(r, func(c *connection, n int) { c.answers(-n) })
}

// busy counts a request that is answered, until done. If there are too many, the connection of
// another one is closed.
func busy(r *http.Request) (done func()) {
	return count(r, func(c *connection, n int) {
		c.answers(n)
		if n < 0 || c.connections.requests <= c.connections.most {
			return
		}
		var surplus *connection
		for o := range c.connections.open {
			if o != c && o.busy > 0 && o.held == 0 {
				surplus = older(surplus, o)
			}
		}
		if surplus != nil {
			c.connections.remove(surplus)
			_ = surplus.Conn.Close()
		}
	})
}

// count has 1 added to what it counts of a request's connection, and taken away by undo.
func count(r *http.Request, add func(c *connection, n int)) (undo func()) {
	conn, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	locked := func(n int) {
		conn.connections.mu.Lock()
		defer conn.connections.mu.Unlock()
		add(conn, n)
	}
	locked(1)
	return func() { locked(-1) }
}
