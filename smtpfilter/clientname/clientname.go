// Package clientname finds the names of clients in DNS and keeps them for as long
// as DNS says.
//
// A client's name is one that its address has (PTR), and that has the address (A or
// AAAA): anybody can give an address any name. A client without such a name is
// unknown, which is kept, too.
package clientname

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// Timeout is how long a name is looked for. Without an answer by then the
	// client is unknown.
	Timeout = 3 * time.Second

	// maxKept bounds the clients whose names are kept: some 3 MB.
	maxKept = 10_000

	// maxAsking bounds the questions at a time, each of which takes a socket, and
	// maxEarly those among them that nobody waits for: a flood of clients that
	// will be refused shall not be a flood of DNS questions.
	maxAsking = 64
	maxEarly  = 16
)

// Names finds and keeps the names of clients. Its methods are safe for concurrent
// use.
type Names struct {
	dial  Dial
	now   func() time.Time
	max   int
	slots chan struct{} // has an element for each question under way
	early chan struct{} // has one for each that Ask began

	ctx    context.Context // of the questions; ended by Close
	cancel context.CancelFunc
	asking sync.WaitGroup

	// What is kept is in two halves: when recent is full it becomes older, and
	// what was in older is forgotten, but for what was asked for again.
	mu            sync.Mutex
	recent, older map[netip.Addr]*entry
}

// Dial connects to a name server, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// entry is what is known of a client.
type entry struct {
	done  chan struct{} // closed once the name has been looked for
	name  string        // "" if unknown; valid once done is closed
	until time.Time     // when to ask again; zero: not done yet. Guarded by Names.mu
}

// New returns a Names without any names. It asks the servers of the system
// (/etc/resolv.conf), after its hosts file; a nil dial connects to them as usual.
func New(dial Dial) *Names {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	n := &Names{
		dial:   dial,
		now:    time.Now,
		max:    maxKept,
		slots:  make(chan struct{}, maxAsking),
		early:  make(chan struct{}, maxEarly),
		recent: map[netip.Addr]*entry{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Close ends the questions under way. From then on clients are unknown.
func (n *Names) Close() {
	n.mu.Lock()
	n.cancel()
	n.mu.Unlock()
	n.asking.Wait()
}

// Name returns the name of the client at addr, without a trailing dot, or "" if it
// is unknown. It waits for the answer at most [Timeout], and no longer than ctx.
func (n *Names) Name(ctx context.Context, addr netip.Addr) string {
	e := n.find(plain(addr), nil)
	if e == nil {
		return ""
	}
	select {
	case <-e.done:
		return e.name
	case <-ctx.Done():
		return ""
	}
}

// Ask begins to look for the name of the client at addr, if it is not known yet, and
// does not wait: Name may be called for it soon. If many others are being asked for
// it does nothing.
func (n *Names) Ask(addr netip.Addr) { n.find(plain(addr), n.early) }

// plain returns an address as it is kept: without a zone, which DNS has no word for.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// find returns what is known of a client, and begins to ask if that is nothing. It
// returns nil if it may not ask: after Close, or if room, which is nil if there are
// no other limits, has no place.
func (n *Names) find(addr netip.Addr, room chan struct{}) *entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, kept := n.recent[addr]
	if !kept {
		e = n.older[addr]
	}
	if e != nil && (e.until.IsZero() || n.now().Before(e.until)) {
		if !kept {
			n.keep(addr, e)
		}
		return e
	}
	if !addr.IsValid() || n.ctx.Err() != nil {
		return nil
	}
	if room != nil {
		select {
		case room <- struct{}{}:
		default:
			return nil
		}
	}
	e = &entry{done: make(chan struct{})}
	n.keep(addr, e)
	n.asking.Go(func() {
		n.ask(addr, e)
		if room != nil {
			<-room
		}
	})
	return e
}

// keep adds an entry. The caller holds mu.
func (n *Names) keep(addr netip.Addr, e *entry) {
	if _, ok := n.recent[addr]; !ok && len(n.recent) >= n.max/2 {
		n.older, n.recent = n.recent, map[netip.Addr]*entry{}
	}
	n.recent[addr] = e
}

// ask looks for a client's name.
func (n *Names) ask(addr netip.Addr, e *entry) {
	ctx, cancel := context.WithTimeout(n.ctx, Timeout)
	defer cancel()
	lasts := unknownLife
	select {
	case n.slots <- struct{}{}:
		e.name, lasts = lookup(ctx, n.dial, addr)
		<-n.slots
	case <-ctx.Done():
		lasts = 0 // it was not asked for: the next one asks
	}
	n.mu.Lock()
	e.until = n.now().Add(lasts)
	n.mu.Unlock()
	close(e.done)
}
