package door

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// Server accepts the connections of mail servers at a Door and hands each to a function.
type Server struct {
	door    *Door
	limiter *limit.Limiter
	handle  func(*Conn)
	ctx     context.Context // ends when connections must not wait any longer
	cancel  context.CancelFunc
	closed  chan struct{} // at the start of Shutdown

	mu        sync.Mutex
	closing   bool
	listeners []net.Listener
	conns     map[*Conn]struct{}
	running   sync.WaitGroup // listeners and connections
}

// NewServer returns a Server. It calls handle for each connection in a goroutine of its own,
// and closes the connection afterwards.
func NewServer(d *Door, handle func(*Conn)) *Server {
	s := &Server{
		door:    d,
		limiter: limit.New(limit.Config{}),
		handle:  handle,
		closed:  make(chan struct{}),
		conns:   map[*Conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until Shutdown, and returns nil then. Several listeners may be
// served at a time.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners = append(s.listeners, l)
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	for {
		nc, err := wire.Accept(l, s.closed, s.acceptFailed)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting on %s: %w", l.Addr(), err)
		}
		s.accepted(nc)
	}
}

func (s *Server) acceptFailed(err error) {
	s.door.cfg.Log.Error("cannot take a connection now, trying again", "door", s.door.cfg.Protocol, "listener", s.door.cfg.Name, "error", err)
}

// accepted handles a connection, or closes it if there are too many.
func (s *Server) accepted(nc net.Conn) {
	cfg := &s.door.cfg
	s.limiter.SetConfig(limit.Config{MaxConnections: s.door.Settings().MaxConnections})
	ticket, result := s.limiter.Connect(netip.Addr{})
	if !result.Allowed() {
		nc.Close()
		cfg.Meter.Limited(cfg.Name, result)
		cfg.Log.Info("limited", "door", cfg.Protocol, "listener", cfg.Name, "limit", result.Limit, "of", result.Scope,
			"value", result.Value, "key", result.Key(),
			"hint", fmt.Sprintf("if the machine can serve more, set %s = %d for this door", result.Key(), 2*result.Value))
		return
	}
	c := &Conn{Conn: nc, Reader: bufio.NewReader(nc), server: s}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		ticket.Release()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	cfg.Meter.Connected(cfg.Name)
	go func() {
		defer s.running.Done()
		defer s.ended(c, ticket)
		defer s.contain()
		s.handle(c)
	}()
}

// contain recovers from a panic, so that it ends one connection and not the gate.
func (s *Server) contain() {
	if p := recover(); p != nil {
		s.door.cfg.Log.Error("panic", "door", s.door.cfg.Protocol, "listener", s.door.cfg.Name, "error", fmt.Sprintf("%v\n%s", p, debug.Stack()))
	}
}

// ended closes a connection that was handled.
func (s *Server) ended(c *Conn, ticket *limit.Ticket) {
	c.Close()
	ticket.Release()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.door.cfg.Meter.Disconnected(s.door.cfg.Name)
}

// Context returns a context that ends when connections must not wait any longer.
func (s *Server) Context() context.Context { return s.ctx }

// Shutdown closes the listeners and the connections that are between two messages, and waits
// for the others. When ctx ends, it closes those too and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		close(s.closed)
	}
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.listeners = nil
	for c := range s.conns {
		c.drain()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.cancel()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		<-done
		errs = append(errs, ctx.Err())
	}
	s.cancel()
	return errors.Join(errs...)
}

// Conn is a connection at a door. Its Reader is the only one that reads from it.
type Conn struct {
	net.Conn
	Reader *bufio.Reader
	server *Server

	mu       sync.Mutex
	waiting  bool // between two messages
	draining bool
}

// Wait waits between two messages until the other side sends something, and for d at most. It
// returns an error if that does not come or the door is closing; then the connection has to
// end.
func (c *Conn) Wait(d time.Duration) error {
	c.mu.Lock()
	if c.draining {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.waiting = true
	err := c.SetReadDeadline(time.Now().Add(d))
	c.mu.Unlock()
	if err == nil {
		_, err = c.Reader.Peek(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	return err
}

// Draining reports whether the door is closing.
func (c *Conn) Draining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// drain ends the wait between two messages, now or when it begins.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if c.waiting {
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			c.server.door.cfg.Log.LogAttrs(context.Background(), slog.LevelDebug, "ending an idle connection", slog.String("error", err.Error()))
		}
	}
}
