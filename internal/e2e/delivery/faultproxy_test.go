package delivery

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A faultKind is what a faultProxy does to a connection.
type faultKind string

const (
	faultReset faultKind = "reset" // resets both sides
	faultStall faultKind = "stall" // passes on nothing more in this direction
	faultSplit faultKind = "split" // sends the rest in another packet
)

// A direction is that of the bytes to which a fault's offset belongs.
type direction string

const (
	toServer direction = "to the server"
	toClient direction = "to the client"
)

// A fault happens to each connection of a faultProxy, before the byte at an offset of
// one direction.
type fault struct {
	direction direction
	pos       int
	kind      faultKind
}

// A faultProxy is a TCP proxy that has a fault until the fault is removed.
type faultProxy struct {
	listener net.Listener
	server   string // address
	fault    atomic.Pointer[fault]
	happened atomic.Int64                // number of faults
	passed   map[direction]*atomic.Int64 // number of bytes, of all connections

	mu    sync.Mutex
	open  map[net.Conn]bool
	done  sync.WaitGroup
	ended bool
}

// newFaultProxy starts a proxy for a server. The caller closes it.
func newFaultProxy(t testing.TB, server string, f *fault) *faultProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{
		listener: listener, server: server, open: map[net.Conn]bool{},
		passed: map[direction]*atomic.Int64{toServer: {}, toClient: {}},
	}
	p.fault.Store(f)
	p.done.Go(p.accept)
	return p
}

func (p *faultProxy) addr() string { return p.listener.Addr().String() }

func (p *faultProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		if p.ended {
			client.Close()
			server.Close()
		}
		p.open[client], p.open[server] = true, true
		p.done.Go(func() { p.relay(client.(*net.TCPConn), server.(*net.TCPConn)) })
		p.mu.Unlock()
	}
}

// relay passes bytes on until both directions have ended.
func (p *faultProxy) relay(client, server *net.TCPConn) {
	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client, toServer) })
	both.Go(func() { p.pump(client, server, toClient) })
	both.Wait()
	client.Close()
	server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// pump passes the bytes of one direction on.
func (p *faultProxy) pump(to, from *net.TCPConn, d direction) {
	buf := make([]byte, 32<<10)
	passed := 0
	for {
		n, err := from.Read(buf)
		piece := buf[:n]
		if f := p.fault.Load(); f != nil && f.direction == d && f.pos >= passed && f.pos < passed+n {
			p.happened.Add(1)
			to.Write(piece[:f.pos-passed])
			piece = piece[f.pos-passed:]
			passed = f.pos
			if p.happen(f.kind, to, from) {
				return
			}
		}
		p.passed[d].Add(int64(n))
		passed += len(piece)
		if _, werr := to.Write(piece); err == nil && werr != nil {
			err = werr
		}
		switch {
		case err == io.EOF:
			to.CloseWrite()
			return
		case err != nil: // pass a reset on
			reset(to, from)
			return
		}
	}
}

// happen does a fault to a connection and reports whether that has ended it.
func (p *faultProxy) happen(kind faultKind, to, from *net.TCPConn) (ended bool) {
	switch kind {
	case faultReset:
		reset(to, from)
		return true
	case faultStall:
		io.Copy(io.Discard, from) // until one side gives up
		to.Close()
		from.Close()
		return true
	}
	return false
}

func reset(conns ...*net.TCPConn) {
	for _, c := range conns {
		c.SetLinger(0)
		c.Close()
	}
}

// close ends every connection and waits until all have ended.
func (p *faultProxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}
