package smtptest

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// server is the part that Sink and Script share: a listener on loopback, a
// goroutine for each connection, and an end to both.
type server struct {
	t        testing.TB
	listener net.Listener
	serve    func(n int, c net.Conn)
	done     sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond // signals a change of the fields below, or of a Sink's or Script's
	open     map[net.Conn]bool
	accepted int
	closed   bool
}

// start listens on a free port of 127.0.0.1, or on a Unix domain socket. It calls
// serve for each connection with its number, from 1, and closes the connection
// when serve returns.
func (s *server) start(t testing.TB, unix bool, serve func(n int, c net.Conn)) {
	t.Helper()
	network, addr := "tcp", "127.0.0.1:0"
	if unix {
		network, addr = "unix", socketPath(t)
	}
	listener, err := net.Listen(network, addr)
	if err != nil {
		t.Fatalf("smtptest: %v", err)
	}
	s.t, s.listener, s.serve = t, listener, serve
	s.changed = sync.NewCond(&s.mu)
	s.open = make(map[net.Conn]bool)
	s.done.Add(1)
	go s.accept()
	t.Cleanup(s.Close)
}

// socketPath returns a path that fits in a sockaddr_un, unlike some of t.TempDir.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "socket")
}

func (s *server) accept() {
	defer s.done.Done()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			c.Close()
			return
		}
		s.accepted++
		n := s.accepted
		s.open[c] = true
		s.done.Add(1)
		s.changed.Broadcast()
		s.mu.Unlock()

		go func() {
			defer s.done.Done()
			s.serve(n, c)
			c.Close()
			s.mu.Lock()
			delete(s.open, c)
			s.changed.Broadcast()
			s.mu.Unlock()
		}()
	}
}

// Addr returns the address to connect to, "127.0.0.1:4711", or the path of the
// socket.
func (s *server) Addr() string { return s.listener.Addr().String() }

// Conns returns the number of connections accepted so far.
func (s *server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Open returns the number of connections that are open now.
func (s *server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// CloseConns closes every open connection. The listener stays.
func (s *server) CloseConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}

// Close closes the listener and every connection, and waits for their
// goroutines. A later Close does nothing.
func (s *server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.listener.Close()
	s.CloseConns()
	s.done.Wait()
}

// WaitConns waits until at most n connections are open.
func (s *server) WaitConns(n int) {
	s.t.Helper()
	s.wait("connections to close", func() bool { return len(s.open) <= n })
}

// wait waits until the condition holds, and fails the test when that takes too
// long. It calls condition with s.mu held.
func (s *server) wait(what string, condition func() bool) {
	s.t.Helper()
	late := false
	timer := time.AfterFunc(waitLimit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !condition() {
		if late {
			s.t.Errorf("smtptest: waited %v for %s", waitLimit, what)
			return
		}
		s.changed.Wait()
	}
}

// Unreachable returns a host and port where nobody listens, nor can until the
// test ends: the port is that of a connection's client.
func Unreachable(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	// With an address the port is bound, and never that of somebody who connects to it.
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := from.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String()
}
