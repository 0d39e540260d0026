package limit

import (
	"net/netip"
	"slices"
	"time"
)

// The scopes, in the order in which they are asked.
const (
	clientScope = iota
	networkScope
	numScopes
)

var (
	scopeNames = [numScopes]string{Client, Network}
	rateNames  = [numRates]string{ConnectionsPerMinute, MessagesPerMinute, RecipientsPerMinute, ErrorsPerMinute}
)

// settings are a Config in the form that operations need. They are immutable.
type settings struct {
	scopes         [numScopes]scope
	maxConnections int // 0: any number
	exempt         []netip.Prefix
	uncounted      []netip.Prefix
	size           int // entries

	limited    [numRates]bool // the rate has a limit in any scope
	connecting bool           // connections have any limit
}

// scope is what holds for one client, or for one network.
type scope struct {
	connections int // 0: any number
	rates       [numRates]bucket
}

// bucket is the limit of a rate.
type bucket struct {
	limit    int   // 0: none
	interval int64 // nanoseconds from one event to the next
}

// wait is how long it takes until another event is allowed, for a rate that is
// used up until a time. Times are nanoseconds.
func (b *bucket) wait(until, now int64) time.Duration {
	room := b.interval * int64(b.limit-1)
	return time.Duration(max(0, until-now-room))
}

func newSettings(c Config) *settings {
	s := &settings{
		scopes:         [numScopes]scope{newScope(c.Client), newScope(c.Network)},
		maxConnections: max(0, c.MaxConnections),
		exempt:         slices.Clone(c.Exempt),
		uncounted:      slices.Clone(c.Uncounted),
		size:           c.MaxEntries,
	}
	if s.size <= 0 {
		s.size = DefaultMaxEntries
	}
	s.connecting = s.maxConnections > 0
	for i := range s.scopes {
		for r := range s.limited {
			s.limited[r] = s.limited[r] || s.scopes[i].rates[r].limit > 0
		}
		s.connecting = s.connecting || s.scopes[i].connections > 0
	}
	s.connecting = s.connecting || s.limited[connectionRate] || s.limited[errorRate]
	return s
}

func newScope(l Limits) scope {
	s := scope{connections: max(0, l.Connections)}
	for r, n := range [numRates]int{
		connectionRate: l.ConnectionsPerMinute,
		messageRate:    l.MessagesPerMinute,
		recipientRate:  l.RecipientsPerMinute,
		errorRate:      l.ErrorsPerMinute,
	} {
		if n > 0 {
			s.rates[r] = bucket{n, max(1, int64(time.Minute)/int64(n))}
		}
	}
	return s
}

// exempts reports that no limit holds the client.
func (s *settings) exempts(addr netip.Addr) bool { return contains(s.exempt, addr) }

// contains reports whether one of the prefixes contains the address.
func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	if len(prefixes) == 0 {
		return false
	}
	addr = addr.Unmap().WithZone("") // a prefix never contains an address with a zone
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
