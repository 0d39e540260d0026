package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Listener accepts connections for go-smtp's server and can drain them.
type Listener struct {
	net.Listener
	cfg    atomic.Pointer[Config]
	closed chan struct{} // closed by Close

	closing, idling sync.Once // close closed and idle

	mu       sync.Mutex
	conns    map[*Conn]struct{}
	draining bool
	idle     chan struct{} // closed when draining and no connection is left
}

// NewListener returns a Listener that owns l.
func NewListener(l net.Listener, cfg Config) *Listener {
	wl := &Listener{
		Listener: l,
		closed:   make(chan struct{}),
		conns:    make(map[*Conn]struct{}),
		idle:     make(chan struct{}),
	}
	wl.SetConfig(cfg)
	return wl
}

// SetConfig changes the configuration of later connections. Open ones keep theirs.
func (l *Listener) SetConfig(cfg Config) {
	cfg = cfg.withDefaults()
	l.cfg.Store(&cfg)
}

// Close makes Accept fail with net.ErrClosed, now and later. Connections stay
// open.
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept waits for the next client, also during temporary errors such as a lack of
// file descriptors. The net.Conn is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	nc, err := Accept(l.Listener, l.closed, l.acceptFailed)
	if err != nil {
		return nil, err
	}
	c := newConn(nc, l.cfg.Load(), l.remove)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	if l.draining {
		c.Drain()
	}
	return c, nil
}

func (l *Listener) acceptFailed(err error) {
	if f := l.cfg.Load().AcceptFailed; f != nil {
		f(err)
	}
}

func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	l.checkIdle()
}

func (l *Listener) checkIdle() {
	if l.draining && len(l.conns) == 0 {
		l.idling.Do(func() { close(l.idle) })
	}
}

// Drain ends idle connections with 421, and waits for the end of open mail
// transactions. When ctx ends, it interrupts those that wait for their client, and still
// waits for those that wait for the next hop. The listener must be closed and no Accept
// under way, or new clients could come.
func (l *Listener) Drain(ctx context.Context) {
	l.drain((*Conn).Drain)
	select {
	case <-l.idle:
		return
	case <-ctx.Done():
	}
	l.drain((*Conn).Interrupt)
	<-l.idle
}

// drain sets draining and calls do for every connection.
func (l *Listener) drain(do func(*Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	for c := range l.conns {
		do(c)
	}
	l.checkIdle()
}

// Limits of the waits between attempts to accept a connection.
const (
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// Accept accepts a connection. After a temporary error, such as a lack of file descriptors
// or memory, it calls failed and tries again, until closed is closed.
func Accept(l net.Listener, closed <-chan struct{}, failed func(error)) (net.Conn, error) {
	for wait := minAcceptWait; ; wait = min(2*wait, maxAcceptWait) {
		nc, err := l.Accept()
		if err == nil || !isTemporary(err) {
			return nc, err
		}
		failed(err)
		select {
		case <-time.After(wait):
		case <-closed:
			return nil, net.ErrClosed
		}
	}
}

// temporary are the errors of accept(2) that say nothing about the listening socket: a
// lack of descriptors or memory, or a client that has left already.
var temporary = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	syscall.ECONNABORTED, syscall.EPROTO, syscall.EINTR, os.ErrDeadlineExceeded,
}

func isTemporary(err error) bool {
	return slices.ContainsFunc(temporary, func(t error) bool { return errors.Is(err, t) })
}
