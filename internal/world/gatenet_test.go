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
	clean   bool // nothing takes long
	used    map[time.Time]bool
	begun   time.Time
	servers map[string]func(*end) // of next hops, by their address
	doors   []*gateListener       // of gates that accept clients
	open    map[*end]bool
	lost    map[string]string // by address of a next hop: "refused" or "silent"
}

func newNetwork(seed uint64) *network {
	return &network{seed: seed, used: map[time.Time]bool{}, servers: map[string]func(*end){}, open: map[*end]bool{}, lost: map[string]string{}}
}

// draw returns a number that depends on the seed and a name. Two goroutines that do the same at one
// instant have the same names, so that it does not matter which is first.
func (n *network) draw(name ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, append(name, n.seed)...)
	x := h.Sum64()
	x = (x ^ x>>32) * 0xd6e8feb86659fd93 // FNV's low bits are poor
	return x ^ x>>32
}

// chance returns a number from 0 up to 1.
func (n *network) chance() float64 {
	return float64(n.draw("chance", time.Since(n.begun))>>11) / (1 << 53)
}

// arrival draws when something arrives that is sent now, not before a time. The caller holds mu.
func (n *network) arrival(least time.Time, name ...any) time.Time {
	x := n.draw(name...)
	d := 100*time.Microsecond + time.Duration(x%2_000_000)
	if !n.clean && x>>32%20 == 0 {
		d += time.Duration(x >> 40 % 800_000_000)
	}
	t := time.Now().Add(d)
	if t.Before(least) {
		t = least
	}
	for n.used[t] {
		t = t.Add(1)
	}
	n.used[t] = true
	return t
}

// pass waits for as long as something takes.
func (n *network) pass(name string) {
	began := time.Since(n.begun)
	n.mu.Lock()
	t := n.arrival(time.Time{}, name, began)
	n.mu.Unlock()
	time.Sleep(time.Until(t))
}

// A signal wakes all who wait for a change.
type signal chan struct{}

func (s *signal) wake() {
	close(*s)
	*s = make(signal)
}

// An end is one end of a connection.
type end struct {
	net           *network
	name          string
	peer          *end
	local, remote net.Addr
	gate          *gateProcess // whose it is; nil: nobody's

	// What follows is guarded by net.mu.
	in       []byte
	fault    error // of reads, once in is empty
	broken   error // of writes
	closed   bool
	changed  signal
	sent     int
	last     time.Time // when the last piece for the peer arrives
	left     int       // so many more bytes are sent, and then the connection is reset; -1: it is not
	deadline time.Time // of reads
	timer    *time.Timer
}

// link makes a connection. The caller holds mu.
func (n *network) link(name string, from, to net.Addr) (a, b *end) {
	a = &end{net: n, name: name + ">", local: from, remote: to, changed: make(signal), left: -1}
	b = &end{net: n, name: name + "<", local: to, remote: from, changed: make(signal), left: -1, peer: a}
	a.peer = b
	n.open[a], n.open[b] = true, true
	return a, b
}

func (e *end) Read(p []byte) (int, error) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	for {
		switch {
		case e.closed:
			return 0, net.ErrClosed
		case !e.deadline.IsZero() && !time.Now().Before(e.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(e.in) > 0:
			n := copy(p, e.in)
			e.in = e.in[n:]
			return n, nil
		case e.fault != nil:
			return 0, e.fault
		}
		changed := e.changed
		e.net.mu.Unlock()
		<-changed
		e.net.mu.Lock()
	}
}

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

// Write never waits: there is room for all.
func (e *end) Write(p []byte) (int, error) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case e.broken != nil:
		return 0, e.broken
	}
	all := len(p)
	if e.left >= 0 {
		p = p[:min(all, e.left)]
		e.left -= len(p)
	}
	for rest := p; len(rest) > 0; {
		k := len(rest)
		if x := e.net.draw(e.name, "cut", e.sent); !e.net.clean && x%8 == 0 {
			k = 1 + int(x>>8%uint64(k))
		}
		piece := slices.Clone(rest[:k])
		rest = rest[k:]
		e.send(func(to *end) { to.in = append(to.in, piece...) })
	}
	if e.left == 0 {
		e.reset()
	}
	return all, nil
}

// send lets something arrive at the peer. The caller holds mu.
func (e *end) send(arrive func(to *end)) {
	e.sent++
	e.last = e.net.arrival(e.last, e.name, e.sent)
	time.AfterFunc(time.Until(e.last), func() {
		e.net.mu.Lock()
		defer e.net.mu.Unlock()
		if e.peer.fault == nil && !e.peer.closed {
			arrive(e.peer)
			e.peer.changed.wake()
		}
	})
}

// reset ends the connection at once at this end, and soon at the other. The caller holds mu.
func (e *end) reset() {
	if e.broken == nil {
		e.send(func(to *end) { to.in, to.fault, to.broken = nil, syscall.ECONNRESET, syscall.EPIPE })
	}
	e.in, e.fault, e.broken = nil, syscall.ECONNRESET, syscall.EPIPE
	e.changed.wake()
}

func (e *end) CloseWrite() error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.finish()
	return nil
}

func (e *end) finish() {
	if e.broken == nil {
		e.broken = syscall.EPIPE
		e.send(func(to *end) { to.fault = io.EOF })
	}
}

// Close resets the connection if there are bytes that nobody has read, as TCP does.
func (e *end) Close() error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	if e.closed {
		return net.ErrClosed
	}
	if len(e.in) > 0 {
		e.reset()
	}
	e.finish()
	e.closed = true
	delete(e.net.open, e)
	if e.timer != nil {
		e.timer.Stop()
	}
	e.changed.wake()
	return nil
}

func (e *end) LocalAddr() net.Addr                { return e.local }
func (e *end) RemoteAddr() net.Addr               { return e.remote }
func (e *end) SetDeadline(t time.Time) error      { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(t time.Time) error { return nil }

func (e *end) SetReadDeadline(t time.Time) error {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.deadline = t
	if e.timer != nil {
		e.timer.Stop()
	}
	if !t.IsZero() && !e.closed {
		e.timer = time.AfterFunc(time.Until(t), func() {
			e.net.mu.Lock()
			defer e.net.mu.Unlock()
			e.changed.wake()
		})
	}
	e.changed.wake()
	return nil
}

// A gateListener is the socket of a listener as one gate has it: a successor has another one.
type gateListener struct {
	gate    *gateProcess
	addr    *net.TCPAddr
	queue   []*end
	closed  bool
	changed signal
	serves  func() // called at the first Accept
}

func (l *gateListener) Addr() net.Addr { return l.addr }

func (l *gateListener) Accept() (net.Conn, error) {
	n := l.gate.w.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.serves != nil && !l.closed {
		n.doors = append(n.doors, l)
		l.serves()
		l.serves = nil
	}
	for !l.closed {
		if len(l.queue) > 0 {
			e := l.queue[0]
			l.queue = l.queue[1:]
			return e, nil
		}
		changed := l.changed
		n.mu.Unlock()
		<-changed
		n.mu.Lock()
	}
	return nil, net.ErrClosed
}

// Close hands those who wait to another gate that listens.
func (l *gateListener) Close() error {
	n := l.gate.w.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	n.doors = slices.DeleteFunc(n.doors, func(other *gateListener) bool { return other == l })
	for _, e := range l.queue {
		if len(n.doors) > 0 {
			n.doors[0].enqueue(e)
			continue
		}
		e.reset()
		e.closed = true
		delete(n.open, e)
	}
	l.changed.wake()
	return nil
}

// enqueue gives a connection to the gate. The caller holds mu.
func (l *gateListener) enqueue(e *end) {
	e.gate = l.gate
	l.gate.ends = append(l.gate.ends, e)
	l.queue = append(l.queue, e)
	l.changed.wake()
}

// connect connects a client to a gate.
func (n *network) connect(name string, from string) (*end, error) {
	n.pass(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.doors) == 0 {
		return nil, syscall.ECONNREFUSED
	}
	l := n.doors[n.draw(name, "door")%uint64(len(n.doors))]
	a, b := n.link(name, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), l.addr)
	l.enqueue(b)
	return a, nil
}

// dial connects a gate to a next hop.
func (p *gateProcess) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n := p.w.net
	name := fmt.Sprint(addr, time.Since(n.begun))
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
	case lost != "", p.dead, n.servers[addr] == nil:
		return nil, syscall.ECONNREFUSED
	}
	a, b := n.link(name, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 30000}, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	a.gate = p
	p.ends = append(p.ends, a)
	n.servers[addr](b)
	return a, nil
}

// cutOff ends all that a gate has, as the death of its process does.
func (n *network) cutOff(p *gateProcess) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.dead = true
	for _, e := range p.ends {
		if !e.closed {
			e.reset()
		}
	}
	n.doors = slices.DeleteFunc(n.doors, func(l *gateListener) bool { return l.gate == p })
}
