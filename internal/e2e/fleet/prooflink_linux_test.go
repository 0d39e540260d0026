package fleet

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// link is a TCP proxy before a server: the network between two machines, which a test can
// break.
type link struct {
	addr string // where it listens
	to   string // the server

	mu      sync.Mutex
	changed *sync.Cond
	state   linkState
	conns   map[net.Conn]bool // of both sides
}

type linkState int

const (
	linkOpen    linkState = iota
	linkCut               // connections end at once
	linkStalled           // nothing passes and no connection ends, as if packets were lost
)

// newLink starts a proxy before a server, with the same IP address, which its certificate has.
func newLink(t testing.TB, to string) *link {
	t.Helper()
	host, _, err := net.SplitHostPort(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	l := &link{addr: listener.Addr().String(), to: to, conns: map[net.Conn]bool{}}
	l.changed = sync.NewCond(&l.mu)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.set(linkCut)
		running.Wait()
	})
	return l
}

// set breaks the link, or mends it.
func (l *link) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	if s == linkCut {
		for c := range l.conns {
			c.Close()
		}
	}
	l.changed.Broadcast()
}

// pass waits while the link is stalled, and reports whether it is open then.
func (l *link) pass() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.state == linkStalled {
		l.changed.Wait()
	}
	return l.state == linkOpen
}

// serve connects a client with the server.
func (l *link) serve(client net.Conn) {
	defer client.Close()
	if !l.pass() {
		return
	}
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	if l.state == linkCut {
		l.mu.Unlock()
		return
	}
	l.conns[client], l.conns[server] = true, true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, client)
		delete(l.conns, server)
	}()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			_, _ = io.Copy(way[1], passing{l, way[0]}) // its end is that of the connection
		})
	}
	both.Wait()
}

// passing is a reader of one side of a link.
type passing struct {
	*link
	r io.Reader
}

func (p passing) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if !p.pass() {
		return 0, errors.New("the link is cut")
	}
	return n, err
}
