package limit

import "slices"

// rate is an index into the per-minute rates.
type rate int

const (
	connectionRate rate = iota
	messageRate
	recipientRate
	errorRate
	numRates
)

// entry holds the counts of a client, a network or a login.
type entry struct {
	key  key
	open int // connections; while there are any, the entry is not idle

	// until is when each rate's allowance is full again: the theoretical
	// arrival time of the cell rate algorithm, in nanoseconds of the Limiter's
	// clock. It is at most a minute ahead.
	until [numRates]int64

	older, newer *entry // in the ring of idle entries
}

// unused reports whether the entry can be dropped without changing any result.
func (e *entry) unused(current int64) bool {
	for _, until := range e.until {
		if until > current {
			return false
		}
	}
	return e.open == 0
}

// table holds the entries. It is not safe for concurrent use.
type table struct {
	entries map[key]*entry

	// idle is the start and end of a ring of the entries without open connections,
	// in the order in which they were last seen: idle.newer is the oldest. The
	// links are in the entries, since an element of container/list would be an
	// allocation for each connection and 32 more bytes an entry.
	idle entry
}

func newTable() *table {
	t := &table{entries: map[key]*entry{}}
	t.idle.older, t.idle.newer = &t.idle, &t.idle
	return t
}

// sweepEach is how many unused entries an operation drops at most. It is more than
// one operation adds (a client, its network and a login), so the table shrinks under any
// load.
const sweepEach = numScopes + 1

// sweep drops unused entries, the oldest first. An unused entry that follows one in
// use waits for it, at most a minute.
func (t *table) sweep(current int64) {
	for range sweepEach {
		oldest := t.idle.newer
		if oldest == &t.idle || !oldest.unused(current) {
			return
		}
		t.drop(oldest)
	}
}

// add makes an idle entry. If the table is full it drops the oldest idle entries
// first, except those of keep, which are the newest.
func (t *table) add(k key, maxEntries int, keep *[numScopes]*entry) *entry {
	for len(t.entries) >= maxEntries && t.idle.newer != &t.idle && !slices.Contains(keep[:], t.idle.newer) {
		t.drop(t.idle.newer)
	}
	e := &entry{key: k}
	t.entries[k] = e
	t.append(e)
	return e
}

func (t *table) drop(e *entry) {
	e.unlink()
	delete(t.entries, e.key)
}

// seen makes an idle entry the newest.
func (t *table) seen(e *entry) {
	if e.open == 0 {
		e.unlink()
		t.append(e)
	}
}

func (t *table) acquire(e *entry) {
	if e.open == 0 {
		e.unlink()
	}
	e.open++
}

func (t *table) release(e *entry) {
	e.open--
	if e.open == 0 {
		t.append(e)
	}
}

// append makes e the newest idle entry.
func (t *table) append(e *entry) {
	e.older, e.newer = t.idle.older, &t.idle
	e.older.newer, e.newer.older = e, e
}

// unlink takes e out of the ring.
func (e *entry) unlink() { e.older.newer, e.newer.older = e.newer, e.older }
