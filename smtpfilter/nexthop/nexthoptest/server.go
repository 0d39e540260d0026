package nexthoptest

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// server is what Sink and Script share: a listener on loopback, a goroutine
// for each connection, and an end to both.
type server struct {
	t        testing.TB
	unix     bool // listens on a Unix domain socket
	listener net.Listener
	serve    func(n int, c net.Conn)
	done     sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond // an open connection more or less, or a record
	open     map[net.Conn]bool
	accepted int
	closed   bool
}

// start listens, on a free port of 127.0.0.1 unless s.unix is set. The function serve gets each
// connection with its number, from 1; the connection is closed when it
// returns.
func (s *server) start(t testing.TB, serve func(n int, c net.Conn)) {
	t.Helper()
	network, addr := "tcp", "127.0.0.1:0"
	if s.unix {
		network, addr = "unix", socketPath(t)
	}
	listener, err := net.Listen(network, addr)
	if err != nil {
		t.Fatalf("next hop for the test: %v", err)
	}
	s.t, s.listener, s.serve = t, listener, serve
	s.changed = sync.NewCond(&s.mu)
	s.open = make(map[net.Conn]bool)
	s.done.Add(1)
	go s.accept()
	t.Cleanup(s.Close)
}

// socketPath is a path that fits in a sockaddr_un, which those of t.TempDir need
// not do.
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

// Addr is the host and port to connect to, "127.0.0.1:4711", or the path of the
// socket.
func (s *server) Addr() string { return s.listener.Addr().String() }

// Conns is the number of connections accepted so far.
func (s *server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Open is the number of connections that are open now.
func (s *server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// CloseConns cuts every open connection. The listener stays.
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

// wait waits until the condition holds, which is asked with s.mu held, and
// fails the test when that takes too long.
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
			s.t.Errorf("next hop for the test: waited %v for %s", waitLimit, what)
			return
		}
		s.changed.Wait()
	}
}
