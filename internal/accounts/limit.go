package accounts

import (
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"
)

// limits bounds the attempts to log in. Each attempt takes a token from several buckets, and a
// successful one gives them back.
//
// An attacker can empty the buckets of a name, and those for everybody. So a name has a bucket
// of its own at each address from which it has logged in before, and in each browser, which has a
// secret to prove it: its owner still gets in there, in the browser even if the attacker has the
// same address. Elsewhere he may have to wait while the attack goes on.
//
// The memory is bounded: full buckets are dropped, and the buckets for everybody let so few
// attempts pass that those of single names and addresses, which fill up meanwhile, are some
// hundreds.
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[bucket]time.Time // when each is full again
}

// bucket identifies a bucket. The name or the place or both are empty if it is for all.
type bucket struct {
	kind        bucketKind
	name, place string // an address, or the hash of a browser's secret
}

type bucketKind int

const (
	ofAll bucketKind = iota
	ofAddress
	ofName
	ofPair     // of a name at an address
	ofAllKnown // of all ofKnown
	ofKnown    // of a name at an address where it has logged in
	ofBrowser  // of a name in a browser where it has logged in
)

// rates says how many attempts a bucket allows at once, and after how long one more.
var rates = map[bucketKind]struct {
	burst int
	every time.Duration
}{
	ofAll:      {40, time.Second},
	ofAddress:  {20, 10 * time.Second},
	ofName:     {20, 20 * time.Second},
	ofPair:     {5, 20 * time.Second},
	ofAllKnown: {40, 500 * time.Millisecond},
	ofKnown:    {10, 10 * time.Second},
	ofBrowser:  {10, 10 * time.Second},
}

// manyBuckets is how many make a search for full ones worth its time.
const manyBuckets = 256

// LimitedError says that a login was not tried, since there were too many.
type LimitedError struct{ Wait time.Duration }

// Error says how long to wait.
func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many attempts to log in: try again in %d s", e.Seconds())
}

// Seconds returns Wait in seconds, at least 1: see the Retry-After of HTTP.
func (e *LimitedError) Seconds() int { return int((e.Wait + time.Second - 1) / time.Second) }

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, buckets: map[bucket]time.Time{}}
}

// attempt is an attempt to log in that is allowed.
type attempt struct {
	limits  *limits
	buckets []bucket // from which it has a token
}

// begin allows an attempt, or returns a LimitedError. Known is the place from which the name has
// logged in before, the zero place if this is a new one.
func (l *limits) begin(name, network string, known place) (*attempt, error) {
	a := &attempt{limits: l}
	switch {
	case known.Browser != "":
		a.buckets = []bucket{{ofBrowser, name, known.Browser}}
	case known.Name != "":
		a.buckets = []bucket{{ofKnown, name, network}, {kind: ofAllKnown}}
	default:
		a.buckets = []bucket{{ofPair, name, network}, {ofName, name, ""}, {ofAddress, "", network}, {kind: ofAll}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if len(l.buckets) > manyBuckets {
		maps.DeleteFunc(l.buckets, func(_ bucket, full time.Time) bool { return !full.After(now) })
	}
	var wait time.Duration
	for _, b := range a.buckets {
		r := rates[b.kind]
		wait = max(wait, l.full(b, now).Sub(now)-time.Duration(r.burst-1)*r.every)
	}
	if wait > 0 {
		return nil, &LimitedError{wait}
	}
	for _, b := range a.buckets {
		l.buckets[b] = l.full(b, now).Add(rates[b.kind].every)
	}
	return a, nil
}

// full returns when a bucket is full, which is never in the past.
func (l *limits) full(b bucket, now time.Time) time.Time {
	if full := l.buckets[b]; full.After(now) {
		return full
	}
	return now
}

// giveBack returns the tokens of an attempt that did not fail.
func (a *attempt) giveBack() {
	l := a.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range a.buckets {
		if full, ok := l.buckets[b]; ok {
			l.buckets[b] = full.Add(-rates[b.kind].every)
		}
	}
}

// maxFrom bounds what is kept of a text that is not an address.
const maxFrom = 64

// network returns the address that counts as one client: an IPv6 network of 64 bits is one
// customer's.
func network(from string) string {
	addr, err := netip.ParseAddr(from)
	if err != nil {
		return from[:min(len(from), maxFrom)]
	}
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	p, _ := addr.Prefix(64) // it has 128 bits
	return p.String()
}
