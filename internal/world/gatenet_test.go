package world

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A network carries bytes in false time: each piece of a write arrives after a time that the seed
// draws, and no two pieces arrive at one instant. So one thing happens at a time, and replay is exact.
type network struct {
	seed uint64

	mu      sync.Mutex
	clean   bool // no delays that matter
	used    map[time.Time]bool
	counts  map[string]int
	servers map[string]func(*end) // of next hops, by their address
	doors   []*gateListener       // where clients come in, of gates that listen
	open    map[*end]bool
	lost    map[string]string // by address: "refused" or "silent"
}

func newNetwork(seed uint64) *network {
	return &network{seed: seed, used: map[time.Time]bool{}, counts: map[string]int{}, servers: map[string]func(*end){}, open: map[*end]bool{}, lost: map[string]string{}}
}

// draw returns a number that depends on the seed, the name, and how often it was drawn. The caller holds mu.
func (n *network) draw(name string) uint64 {
	n.counts[name]++
	h := fnv.New64a()
	fmt.Fprint(h, n.seed, name, n.counts[name])
	x := h.Sum64()
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93 // FNV's low bits are poor
	return x ^ x>>32
}

// random returns a number from 0 up to 1.
func (n *network) random(name string) float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return float64(n.draw(name)>>11) / (1 << 53)
}

// delay draws how long a piece takes. The caller holds mu.
func (n *network) delay(name string) time.Duration {
	x := n.draw(name)
	d := 100*time.Microsecond + time.Duration(x%2_000_000)
	if !n.clean && x>>32%20 == 0 {
		d += time.Duration(x >> 40 % 800_000_000)
	}
	return d
}

// instant returns the first instant from t on at which nothing else arrives. The caller holds mu.
func (n *network) instant(t time.Time) time.Time {
	for n.used[t] {
		t = t.Add(1)
	}
	n.used[t] = true
	return t
}

// pass waits for as long as something takes that is called name.
func (n *network) pass(name string) {
	n.mu.Lock()
	t := n.instant(time.Now().Add(n.delay(name)))
	n.mu.Unlock()
	time.Sleep(time.Until(t))
}

// An end is one end of a connection.
type end struct {
	net           *network
	name          string
	peer          *end
	local, remote net.Addr
	gate          *gateProcess // whose it is; nil: nobody's

	// What follows is guarded by net.mu.
	in          []byte
	fault       error // of reads, once in is empty
	broken      error // of writes
	closed      bool
	changed     chan struct{}
	last        time.Time // when the last piece for the peer arrives
	left        int       // so many more bytes are sent, and then the connection is reset; -1: it is not
	read, write time.Time // deadlines
	stalled     bool      // what is sent does not arrive any more
	timer       *time.Timer
	wrote       int
}

// link makes a connection.
func (n *network) link(name string, from, to net.Addr) (a, b *end) {
	a = &end{net: n, name: name + ">", local: from, remote: to, changed: make(chan struct{}), left: -1}
	b = &end{net: n, name: name + "<", local: to, remote: from, changed: make(chan struct{}), left: -1, peer: a}
	a.peer = b
	n.open[a], n.open[b] = true, true
	return a, b
}

// wake wakes who waits for the end. The caller holds mu.
func (e *end) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// Read implements net.Conn.
func (e *end) Read(p []byte) (int, error) {
	for {
		e.net.mu.Lock()
		changed := e.changed
		switch {
		case e.closed:
			e.net.mu.Unlock()
			return 0, net.ErrClosed
		case len(e.in) > 0 && !expired(e.read):
			n := copy(p, e.in)
			e.in = e.in[n:]
			e.net.mu.Unlock()
			return n, nil
		case expired(e.read):
			e.net.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case e.fault != nil:
			defer e.net.mu.Unlock()
			return 0, e.fault
		}
		e.net.mu.Unlock()
		<-changed
	}
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// Pending is for wire.Pending.
func (e *end) Pending() (bool, error) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	switch {
	case e.closed:
		return false, net.ErrClosed
	case len(e.in) > 0:
		return true, nil
	}
	return false, e.fault
}

// Write implements net.Conn. It never waits: there is room for all.
func (e *end) Write(p []byte) (int, error) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case e.broken != nil:
		return 0, e.broken
	case expired(e.write):
		return 0, os.ErrDeadlineExceeded
	}
	n := len(p)
	if e.left >= 0 && n >= e.left {
		p = p[:e.left]
	}
	e.wrote += len(p)
	for rest := p; len(rest) > 0; {
		k := len(rest)
		if x := e.net.draw(e.name + "cut"); !e.net.clean && x%8 == 0 {
			k = 1 + int(x>>8%uint64(k))
		}
		piece := slices.Clone(rest[:k])
		rest = rest[k:]
		e.send(func(to *end) { to.in = append(to.in, piece...) })
	}
	if e.left >= 0 {
		if e.left -= len(p); e.left == 0 {
			e.reset()
		}
	}
	return n, nil
}

// send lets something arrive at the peer. The caller holds mu.
func (e *end) send(arrive func(to *end)) {
	if e.stalled {
		return
	}
	t := time.Now().Add(e.net.delay(e.name))
	if !t.After(e.last) {
		t = e.last.Add(1)
	}
	e.last = e.net.instant(t)
	time.AfterFunc(time.Until(e.last), func() {
		e.net.mu.Lock()
		defer e.net.mu.Unlock()
		if e.peer.fault == nil && !e.peer.closed {
			arrive(e.peer)
			e.peer.wake()
		}
	})
}

// reset ends the connection at once at this end, and soon at the other. The caller holds mu.
func (e *end) reset() {
	e.in, e.fault, e.broken = nil, syscall.ECONNRESET, syscall.EPIPE
	e.send(func(to *end) { to.in, to.fault, to.broken = nil, syscall.ECONNRESET, syscall.EPIPE })
	e.wake()
}

// CloseWrite says that nothing more comes.
func (e *end) CloseWrite() error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.closeWrite()
	return nil
}

func (e *end) closeWrite() {
	if e.broken == nil {
		e.broken = syscall.EPIPE
		e.send(func(to *end) { to.fault = io.EOF })
	}
}

// Close implements net.Conn. With bytes that nobody has read it resets the connection, as TCP does.
func (e *end) Close() error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	if e.closed {
		return net.ErrClosed
	}
	if len(e.in) > 0 {
		e.reset()
	}
	e.closeWrite()
	e.closed = true
	delete(e.net.open, e)
	if e.timer != nil {
		e.timer.Stop()
	}
	e.wake()
	return nil
}

// LocalAddr implements net.Conn.
func (e *end) LocalAddr() net.Addr { return e.local }

// RemoteAddr implements net.Conn.
func (e *end) RemoteAddr() net.Addr { return e.remote }

// SetDeadline implements net.Conn.
func (e *end) SetDeadline(t time.Time) error {
	_ = e.SetWriteDeadline(t)
	return e.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (e *end) SetWriteDeadline(t time.Time) error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.write = t
	return nil
}

// SetReadDeadline implements net.Conn.
func (e *end) SetReadDeadline(t time.Time) error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.read = t
	if e.timer != nil {
		e.timer.Stop()
	}
	if !t.IsZero() && !e.closed {
		e.timer = time.AfterFunc(time.Until(t), func() {
			e.net.mu.Lock()
			defer e.net.mu.Unlock()
			e.wake()
		})
	}
	e.wake()
	return nil
}

// A gateListener is the socket of a listener, as one gate has it: a successor has another one.
type gateListener struct {
	net     *network
	gate    *gateProcess
	addr    *net.TCPAddr
	queue   []*end
	closed  bool
	changed chan struct{}
	serves  func() // called at the first Accept
}

// listen opens the listener for a gate.
func (n *network) listen(g *gateProcess, addr *net.TCPAddr, serves func()) *gateListener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &gateListener{net: n, gate: g, addr: addr, changed: make(chan struct{}), serves: serves}
	return l
}

// Accept implements net.Listener.
func (l *gateListener) Accept() (net.Conn, error) {
	l.net.mu.Lock()
	if l.serves != nil && !l.closed {
		l.net.doors = append(l.net.doors, l)
		l.serves()
		l.serves = nil
	}
	for {
		if l.closed {
			l.net.mu.Unlock()
			return nil, net.ErrClosed
		}
		if len(l.queue) > 0 {
			e := l.queue[0]
			l.queue = l.queue[1:]
			l.net.mu.Unlock()
			return e, nil
		}
		changed := l.changed
		l.net.mu.Unlock()
		<-changed
		l.net.mu.Lock()
	}
}

// Close implements net.Listener. Who waits goes to another gate that listens.
func (l *gateListener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	l.net.doors = slices.DeleteFunc(l.net.doors, func(other *gateListener) bool { return other == l })
	for _, e := range l.queue {
		if len(l.net.doors) == 0 {
			e.reset()
			delete(l.net.open, e)
			e.closed = true
		} else {
			l.net.doors[0].enqueue(e)
		}
	}
	l.wake()
	return nil
}

func (l *gateListener) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// enqueue gives a connection to the gate. The caller holds mu.
func (l *gateListener) enqueue(e *end) {
	e.gate = l.gate
	l.gate.ends = append(l.gate.ends, e)
	l.queue = append(l.queue, e)
	l.wake()
}

// Addr implements net.Listener.
func (l *gateListener) Addr() net.Addr { return l.addr }

// connect connects a client to the gate.
func (n *network) connect(name string, from string) (*end, error) {
	n.pass(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.doors) == 0 {
		return nil, syscall.ECONNREFUSED
	}
	l := n.doors[n.draw(name)%uint64(len(n.doors))]
	a, b := n.link(name, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), l.addr)
	l.enqueue(b)
	return a, nil
}

// dialFrom returns how a gate connects to next hops.
func (n *network) dialFrom(g *gateProcess) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		n.pass(addr)
		n.mu.Lock()
		defer n.mu.Unlock()
		lost := n.lost[addr]
		if lost == "silent" {
			n.mu.Unlock()
			<-ctx.Done()
			n.mu.Lock()
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case lost != "", g.dead, n.servers[addr] == nil:
			return nil, syscall.ECONNREFUSED
		}
		n.counts["to "+addr]++
		name := fmt.Sprintf("%s#%d", addr, n.counts["to "+addr])
		a, b := n.link(name, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 30000}, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
		a.gate = g
		g.ends = append(g.ends, a)
		n.servers[addr](b)
		return a, nil
	}
}

// cutOff ends all that a gate has, as the death of its process does.
func (n *network) cutOff(g *gateProcess) {
	n.mu.Lock()
	defer n.mu.Unlock()
	g.dead = true
	for _, e := range g.ends {
		if !e.closed && e.broken == nil {
			e.reset()
		}
		e.stalled = true
	}
	n.doors = slices.DeleteFunc(n.doors, func(l *gateListener) bool { return l.gate == g })
}

// left returns how many ends are open.
func (n *network) left() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open)
}
