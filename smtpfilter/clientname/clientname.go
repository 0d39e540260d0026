// Package clientname looks up the names of clients in DNS and caches them for their
// TTL.
//
// A client's name is the name of its address (PTR) if that name has this address (A or
// AAAA). The second lookup is needed because the owner of an address can give it any
// name. A client without such a name is unknown, which is cached too.
package clientname

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"spamgate/internal/recent"
)

const (
	// Timeout bounds a lookup. Without an answer by then the client is unknown.
	Timeout = 3 * time.Second

	// maxCached bounds the cached clients: about 3 MB.
	maxCached = 10_000

	// maxLookups bounds the lookups at a time, each of which takes a socket.
	// maxPrefetch bounds those that Ask began: a flood of clients that will be
	// refused must not become a flood of DNS queries.
	maxLookups  = 64
	maxPrefetch = 16
)

// Names looks up and caches the names of clients. Its methods are safe for concurrent
// use.
type Names struct {
	dial       Dial
	now        func() time.Time
	slots      chan struct{} // has an element for each lookup under way
	prefetches chan struct{} // has an element for each lookup that Ask began

	ctx     context.Context // of the lookups; ended by Close
	cancel  context.CancelFunc
	lookups sync.WaitGroup

	mu    sync.Mutex
	cache *recent.Map[netip.Addr, *entry]
}

// Dial connects to a name server, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// entry is the cached name of a client.
type entry struct {
	done  chan struct{} // closed at the end of the lookup
	name  string        // "" if unknown; valid once done is closed
	until time.Time     // when it expires; zero during the lookup. Guarded by Names.mu
}

// New returns a Names with an empty cache. It uses the system's hosts file, then its
// name servers (/etc/resolv.conf). A nil dial connects to them in the usual way.
func New(dial Dial) *Names {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	n := &Names{
		dial:       dial,
		now:        time.Now,
		slots:      make(chan struct{}, maxLookups),
		prefetches: make(chan struct{}, maxPrefetch),
		cache:      recent.New[netip.Addr, *entry](maxCached),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Close ends the lookups under way. Afterwards all clients are unknown.
func (n *Names) Close() {
	n.mu.Lock()
	n.cancel()
	n.mu.Unlock()
	n.lookups.Wait()
}

// Name returns the name of the client at addr, without a trailing dot, or "" if it
// is unknown. It waits for the answer for at most [Timeout], and not after ctx ends.
func (n *Names) Name(ctx context.Context, addr netip.Addr) string {
	e := n.find(withoutZone(addr), nil)
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

// Ask begins to look up the name of the client at addr if it is not cached, and does not
// wait: Name may be called for it soon. If there are too many such lookups, it does
// nothing.
func (n *Names) Ask(addr netip.Addr) { n.find(withoutZone(addr), n.prefetches) }

// withoutZone returns an address without its zone, which DNS does not know.
func withoutZone(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// find returns the entry of a client, and begins a lookup if there is none or it has
// expired. It returns nil if it may not begin one: after Close, or if slots is full. A
// nil slots is no limit.
func (n *Names) find(addr netip.Addr, slots chan struct{}) *entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e, ok := n.cache.Get(addr); ok && (e.until.IsZero() || n.now().Before(e.until)) {
		return e
	}
	if !addr.IsValid() || n.ctx.Err() != nil {
		return nil
	}
	if slots != nil {
		select {
		case slots <- struct{}{}:
		default:
			return nil
		}
	}
	e := &entry{done: make(chan struct{})}
	n.cache.Put(addr, e)
	n.lookups.Go(func() {
		n.lookup(addr, e)
		if slots != nil {
			<-slots
		}
	})
	return e
}

func (n *Names) lookup(addr netip.Addr, e *entry) {
	ctx, cancel := context.WithTimeout(n.ctx, Timeout)
	defer cancel()
	var ttl time.Duration // 0 without a lookup, so that the next call begins one
	select {
	case n.slots <- struct{}{}:
		e.name, ttl = lookup(ctx, n.dial, addr)
		<-n.slots
	case <-ctx.Done():
	}
	n.mu.Lock()
	e.until = n.now().Add(ttl)
	n.mu.Unlock()
	close(e.done)
}
