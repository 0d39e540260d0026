package limit

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter counts what clients do. Its methods are safe for concurrent use. A nil
// Limiter allows everything.
type Limiter struct {
	settings atomic.Pointer[settings]
	current  func() int64 // nanoseconds since New

	// One lock for all. With a lock for each of 16 parts of the table, two busy
	// cores took as long (Message 158 ns, with one lock 139 to 146 ns).
	mu    sync.Mutex
	open  int // connections
	table *table
}

// New returns a Limiter.
func New(c Config) *Limiter {
	epoch := time.Now()
	l := &Limiter{table: newTable(), current: func() int64 { return int64(time.Since(epoch)) }}
	if clock := c.Now; clock != nil {
		epoch = clock()
		l.current = func() int64 { return int64(clock().Sub(epoch)) }
	}
	l.SetConfig(c)
	return l
}

// SetConfig replaces the limits and keeps the counts: the used share of each rate's
// allowance stays the same. Events without a limit were not counted, so connections
// that were opened then never count towards a later limit. The clock of New stays.
func (l *Limiter) SetConfig(c Config) { l.settings.Store(newSettings(c)) }

// Ticket is an open connection.
type Ticket struct {
	limiter  *Limiter
	released atomic.Bool
	entries  [loginScope]*entry // nil if the scope has no limit of connections
}

// Connect asks for a connection of a client. The caller releases the Ticket when the
// connection ends. The Ticket may be nil, and is nil if the connection is not allowed.
// A client that has used up its errors may not connect until it may make another
// error.
//
// Only MaxConnections applies to an address that is not valid, such as that of a Unix
// socket.
func (l *Limiter) Connect(addr netip.Addr) (*Ticket, Result) {
	if l == nil {
		return nil, Result{}
	}
	s := l.settings.Load()
	if !s.limitsConnections {
		return nil, Result{}
	}
	exempt := s.exempts(addr)
	counted := !contains(s.uncounted, addr)
	v := l.visit(s, addr, 0, exempt)
	defer v.leave()
	for _, result := range [...]Result{v.checkOpen(counted), v.check(connectionRate), v.check(errorRate)} {
		if !result.Allowed() {
			return nil, result
		}
	}
	if most := s.maxConnections; most > 0 && l.open >= most && !exempt {
		return nil, Result{Limit: Connections, Scope: All, Value: most}
	}
	l.open++
	v.use(connectionRate)
	t := &Ticket{limiter: l}
	if counted {
		t.entries = v.acquire()
	}
	return t, Result{}
}

// ConnectProxy is Connect for a proxy that has not yet named its client. Of the limits
// on connections only MaxConnections applies. The caller calls Connect for the client
// that the proxy names.
func (l *Limiter) ConnectProxy(addr netip.Addr) (*Ticket, Result) {
	if l != nil && !l.settings.Load().exempts(addr) {
		addr = netip.Addr{}
	}
	return l.Connect(addr)
}

// Release ends the connection. A second call, or one on a nil Ticket, does nothing.
func (t *Ticket) Release() {
	if t == nil || !t.released.CompareAndSwap(false, true) {
		return
	}
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	for _, e := range t.entries {
		if e != nil {
			l.table.release(e)
		}
	}
}

// Message asks whether a client may begin a message, and counts it if so.
func (l *Limiter) Message(addr netip.Addr) Result { return l.MessageOf(addr, 0) }

// MessageOf is Message for a client that uses a login.
func (l *Limiter) MessageOf(addr netip.Addr, who LoginID) Result {
	return l.take(addr, who, messageRate)
}

// Recipient asks whether a client may name a recipient, and counts it if so.
func (l *Limiter) Recipient(addr netip.Addr) Result { return l.RecipientOf(addr, 0) }

// RecipientOf is Recipient for a client that uses a login.
func (l *Limiter) RecipientOf(addr netip.Addr, who LoginID) Result {
	return l.take(addr, who, recipientRate)
}

// Error counts a client's error. If the result is not allowed, the client has made too
// many, and the caller should close the connection.
func (l *Limiter) Error(addr netip.Addr) Result { return l.take(addr, 0, errorRate) }

// Forgive takes back an error that Error has allowed: the caller counted in advance what has
// succeeded.
func (l *Limiter) Forgive(addr netip.Addr) {
	if l == nil {
		return
	}
	s := l.settings.Load()
	if !s.limited[errorRate] || !addr.IsValid() || s.exempts(addr) {
		return
	}
	v := l.visit(s, addr, 0, false)
	defer v.leave()
	v.giveBack(errorRate)
}

// take counts an event of a rate if it is allowed.
func (l *Limiter) take(addr netip.Addr, who LoginID, r rate) Result {
	if l == nil {
		return Result{}
	}
	s := l.settings.Load()
	if !s.limited[r] || !addr.IsValid() && who == 0 || s.exempts(addr) {
		return Result{}
	}
	v := l.visit(s, addr, who, false)
	defer v.leave()
	result := v.check(r)
	if result.Allowed() {
		v.use(r)
	}
	return result
}
