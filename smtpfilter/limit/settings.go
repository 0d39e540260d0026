package limit

import (
	"net/netip"
	"slices"
	"time"
)

// The scopes, in the order in which they are checked.
const (
	clientScope = iota
	networkScope
	loginScope // of rates only: no connection is counted there
	numScopes
)

var (
	scopeNames = [numScopes]string{Client, Network, Login}
	rateNames  = [numRates]string{ConnectionsPerMinute, MessagesPerMinute, RecipientsPerMinute, ErrorsPerMinute}
)

// settings are a Config in the form that operations need. They are immutable.
type settings struct {
	scopes         [numScopes]scope
	maxConnections int // 0: no limit
	exempt         []netip.Prefix
	uncounted      []netip.Prefix
	maxEntries     int

	limited           [numRates]bool // the rate has a limit in a scope
	limitsConnections bool           // some limit applies to connections
}

// scope holds the limits of one client, one network or one login.
type scope struct {
	connections int // 0: no limit
	rates       [numRates]rateLimit
}

// rateLimit is the limit of a rate.
type rateLimit struct {
	limit    int   // 0: none
	interval int64 // nanoseconds from one event to the next
}

// wait returns how long it takes until another event is allowed, given the time
// until which the rate is used up. Times are in nanoseconds.
func (l *rateLimit) wait(until, current int64) time.Duration {
	burst := l.interval * int64(l.limit-1)
	return time.Duration(max(0, until-current-burst))
}

func newSettings(c Config) *settings {
	s := &settings{
		scopes: [numScopes]scope{newScope(c.Client), newScope(c.Network), newScope(Limits{
			MessagesPerMinute: c.Login.MessagesPerMinute, RecipientsPerMinute: c.Login.RecipientsPerMinute,
		})},
		maxConnections: max(0, c.MaxConnections),
		exempt:         slices.Clone(c.Exempt),
		uncounted:      slices.Clone(c.Uncounted),
		maxEntries:     c.MaxEntries,
	}
	if s.maxEntries <= 0 {
		s.maxEntries = DefaultMaxEntries
	}
	s.limitsConnections = s.maxConnections > 0
	for _, scope := range s.scopes {
		for r, l := range scope.rates {
			s.limited[r] = s.limited[r] || l.limit > 0
		}
		s.limitsConnections = s.limitsConnections || scope.connections > 0
	}
	s.limitsConnections = s.limitsConnections || s.limited[connectionRate] || s.limited[errorRate]
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
			s.rates[r] = rateLimit{n, max(1, int64(time.Minute)/int64(n))}
		}
	}
	return s
}

// exempts reports whether no limit applies to the client.
func (s *settings) exempts(addr netip.Addr) bool { return contains(s.exempt, addr) }

// contains reports whether one of the prefixes contains the address.
func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("") // a prefix never contains an address with a zone
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
