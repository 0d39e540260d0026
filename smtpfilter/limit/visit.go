package limit

import "net/netip"

// visit is one operation on the counts. It holds the Limiter's lock until leave.
type visit struct {
	limiter  *Limiter
	settings *settings
	from, to int // the scopes that apply to the client
	current  int64
	keys     [numScopes]key
	entries  [numScopes]*entry // nil: not looked up, or there is none
}

// visit locks the Limiter. No scope applies to a client that is free, only that of its login
// to one without a valid address, and that only to one with a login.
func (l *Limiter) visit(s *settings, addr netip.Addr, who LoginID, free bool) visit {
	v := visit{limiter: l, settings: s, from: loginScope, to: loginScope}
	if !free && addr.IsValid() {
		v.from = clientScope
		v.keys[clientScope], v.keys[networkScope] = keysOf(addr)
	}
	if !free && who != 0 {
		v.to = numScopes
		v.keys[loginScope] = key{uint64(who), login}
	}
	l.mu.Lock()
	v.current = l.current() // under the lock, so that it never goes back
	l.table.sweep(v.current)
	return v
}

func (v *visit) leave() { v.limiter.mu.Unlock() }

// find returns the entry of a scope, or nil if there is none.
func (v *visit) find(scope int) *entry {
	if v.entries[scope] == nil {
		if e := v.limiter.table.entries[v.keys[scope]]; e != nil {
			v.limiter.table.seen(e)
			v.entries[scope] = e
		}
	}
	return v.entries[scope]
}

// findOrAdd returns the entry of a scope, a new one if there is none.
func (v *visit) findOrAdd(scope int) *entry {
	if v.find(scope) == nil {
		v.entries[scope] = v.limiter.table.add(v.keys[scope], v.settings.maxEntries, &v.entries)
	}
	return v.entries[scope]
}

// check reports whether a rate allows another event. It changes no count.
func (v *visit) check(r rate) Result {
	for i := v.from; i < v.to; i++ {
		l := &v.settings.scopes[i].rates[r]
		if l.limit == 0 {
			continue
		}
		if e := v.find(i); e != nil { // else nothing is used, and every limit is at least 1
			if wait := l.wait(e.until[r], v.current); wait > 0 {
				return Result{Limit: rateNames[r], Scope: scopeNames[i], Value: l.limit, RetryAfter: wait}
			}
		}
	}
	return Result{}
}

// checkOpen reports whether another connection may be open. Connections that are not
// counted always may.
func (v *visit) checkOpen(counted bool) Result {
	if !counted {
		return Result{}
	}
	for i := v.from; i < v.to; i++ {
		n := v.settings.scopes[i].connections
		if n == 0 {
			continue
		}
		if e := v.find(i); e != nil && e.open >= n {
			return Result{Limit: Connections, Scope: scopeNames[i], Value: n}
		}
	}
	return Result{}
}

// use counts an event of a rate.
func (v *visit) use(r rate) {
	for i := v.from; i < v.to; i++ {
		if l := &v.settings.scopes[i].rates[r]; l.limit > 0 {
			e := v.findOrAdd(i)
			e.until[r] = max(e.until[r], v.current) + l.interval
		}
	}
}

// giveBack takes back an event of a rate. A time that has passed then is as none.
func (v *visit) giveBack(r rate) {
	for i := v.from; i < v.to; i++ {
		if e := v.find(i); e != nil {
			e.until[r] -= v.settings.scopes[i].rates[r].interval
		}
	}
}

// acquire counts an open connection, and returns the entries that count it.
func (v *visit) acquire() (held [loginScope]*entry) {
	for i := v.from; i < loginScope; i++ {
		if v.settings.scopes[i].connections > 0 {
			held[i] = v.findOrAdd(i)
			v.limiter.table.acquire(held[i])
		}
	}
	return held
}
