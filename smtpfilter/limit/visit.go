package limit

import "net/netip"

// visit is one operation's work on the counts. The Limiter is locked from
// Limiter.visit to leave.
type visit struct {
	limiter *Limiter
	size    int     // what the table may hold
	scopes  []scope // what holds for the client
	now     int64
	keys    [numScopes]key
	found   [numScopes]*entry // nil: not looked up, or there is none
}

// visit locks the Limiter. No scope holds a client that is free.
func (l *Limiter) visit(s *settings, addr netip.Addr, free bool) visit {
	v := visit{limiter: l, size: s.size}
	if !free {
		v.scopes = s.scopes[:]
		v.keys[clientScope], v.keys[networkScope] = keysOf(addr)
	}
	l.mu.Lock()
	v.now = l.now() // with the lock held, so that it never goes back
	l.table.sweep(v.now)
	return v
}

func (v *visit) leave() { v.limiter.mu.Unlock() }

// look finds the entry of a scope; nil if there is none.
func (v *visit) look(scope int) *entry {
	if v.found[scope] == nil {
		if e := v.limiter.table.entries[v.keys[scope]]; e != nil {
			v.limiter.table.seen(e)
			v.found[scope] = e
		}
	}
	return v.found[scope]
}

// entry finds the entry of a scope or makes it.
func (v *visit) entry(scope int) *entry {
	if e := v.look(scope); e != nil {
		return e
	}
	e := v.limiter.table.add(v.keys[scope], v.size, v.found[1-scope])
	v.found[scope] = e
	return e
}

// check says whether a rate allows another event. It changes no count.
func (v *visit) check(r rate) Verdict {
	for i := range v.scopes {
		b := &v.scopes[i].rates[r]
		if b.limit == 0 {
			continue
		}
		e := v.look(i)
		if e == nil {
			continue // nothing is used, and every limit is at least 1
		}
		if wait := b.wait(e.until[r], v.now); wait > 0 {
			return Verdict{Limit: rateNames[r], Scope: scopeNames[i], Value: b.limit, RetryAfter: wait}
		}
	}
	return Verdict{}
}

// checkOpen says whether another connection may be open, which it always may if
// it is not counted.
func (v *visit) checkOpen(counted bool) Verdict {
	if !counted {
		return Verdict{}
	}
	for i := range v.scopes {
		n := v.scopes[i].connections
		if n == 0 {
			continue
		}
		if e := v.look(i); e != nil && e.open >= n {
			return Verdict{Limit: Connections, Scope: scopeNames[i], Value: n}
		}
	}
	return Verdict{}
}

// use counts an event of a rate.
func (v *visit) use(r rate) {
	for i := range v.scopes {
		if b := &v.scopes[i].rates[r]; b.limit > 0 {
			e := v.entry(i)
			e.until[r] = max(e.until[r], v.now) + b.interval
		}
	}
}

// acquire counts an open connection, and gives the entries where it is counted.
func (v *visit) acquire() (held [numScopes]*entry) {
	for i := range v.scopes {
		if v.scopes[i].connections > 0 {
			held[i] = v.entry(i)
			v.limiter.table.acquire(held[i])
		}
	}
	return held
}
