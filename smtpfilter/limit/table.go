package limit

// rate is one of the things that are counted a minute.
type rate int

const (
	connectionRate rate = iota
	messageRate
	recipientRate
	errorRate
	numRates
)

// entry is what is remembered of a client or a network.
type entry struct {
	key  key
	open int // connections; at least 1 keeps the entry out of the idle ones

	// until is when each rate's allowance is whole again: the theoretical
	// arrival time of the cell rate algorithm, in nanoseconds of the Limiter's
	// clock. It is a minute ahead at most.
	until [numRates]int64

	older, newer *entry // among the idle ones
}

// whole reports that the entry says no more than none would.
func (e *entry) whole(now int64) bool {
	for _, until := range e.until {
		if until > now {
			return false
		}
	}
	return e.open == 0
}

// table holds the entries. It is not safe for concurrent use.
type table struct {
	entries map[key]*entry

	// The idle entries, those without open connections, by when they were last
	// seen.
	oldest, newest *entry
}

// sweepEach is how many entries an operation drops at most because they are
// whole. It is more than one operation adds (a client and its network), so that
// the table shrinks under any load.
const sweepEach = 3

// sweep drops entries that are whole, the oldest first. An entry that is whole
// behind one that is not waits for it, a minute at most.
func (t *table) sweep(now int64) {
	for range sweepEach {
		e := t.oldest
		if e == nil || !e.whole(now) {
			return
		}
		t.drop(e)
	}
}

// add makes an idle entry, for which the oldest give way where the table is
// full, but not the one to keep, which is the newest.
func (t *table) add(k key, most int, keep *entry) *entry {
	for len(t.entries) >= most && t.oldest != nil && t.oldest != keep {
		t.drop(t.oldest)
	}
	e := &entry{key: k}
	t.entries[k] = e
	t.append(e)
	return e
}

// drop forgets an idle entry.
func (t *table) drop(e *entry) {
	t.unlink(e)
	delete(t.entries, e.key)
}

// seen makes an idle entry the newest.
func (t *table) seen(e *entry) {
	if e.open == 0 && t.newest != e {
		t.unlink(e)
		t.append(e)
	}
}

// acquire notes an open connection.
func (t *table) acquire(e *entry) {
	if e.open == 0 {
		t.unlink(e)
	}
	e.open++
}

// release notes that a connection has ended.
func (t *table) release(e *entry) {
	e.open--
	if e.open == 0 {
		t.append(e)
	}
}

func (t *table) append(e *entry) {
	e.older, e.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = e
	} else {
		t.oldest = e
	}
	t.newest = e
}

func (t *table) unlink(e *entry) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		t.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		t.newest = e.older
	}
	e.older, e.newer = nil, nil
}
