// Package limit bounds what clients may do: open connections, and connections,
// messages, recipients and errors per minute. Each limit holds for one client,
// for its network, or for the login that it uses. The counts are in memory, in a
// table of bounded size.
//
// A client is an IPv4 address or an IPv6 /64, because a host chooses and changes
// its addresses within a /64 itself (RFC 4862, RFC 8981). Its network is the /24
// or the /48. An IPv4-mapped IPv6 address counts as the IPv4 address. Zones are
// ignored.
//
// Rates use the generic cell rate algorithm of ITU-T I.371 (virtual scheduling),
// which is equivalent to a token bucket: with a limit of N per minute, N events may
// come at once, and one more every 60/N seconds. So any t minutes see at most N + t*N
// events. It needs one number per rate. Counting anew each minute would need two, and
// would let 2*N events through around the end of a minute.
//
// A refused event uses nothing up. A client that keeps asking is served at the rate
// of its limit and is not locked out.
package limit

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Limits bound one client or one network. Zero or less is no limit. The tags are those of
// spamgate's configuration, where a key begins with the scope: client_connections.
type Limits struct {
	Connections int `toml:"connections" range:"0,1000000"` // open at a time

	// The others are per minute. The caller decides what an error is, see
	// [Limiter.Error].
	ConnectionsPerMinute int `toml:"connections_per_minute" range:"0,1000000"`
	MessagesPerMinute    int `toml:"messages_per_minute" range:"0,1000000"`
	RecipientsPerMinute  int `toml:"recipients_per_minute" range:"0,1000000"`
	ErrorsPerMinute      int `toml:"errors_per_minute" range:"0,1000000"`
}

// LoginLimits bound one login, from whatever clients it is used. Zero or less is no limit.
type LoginLimits struct {
	MessagesPerMinute   int `toml:"messages_per_minute" range:"0,1000000"`
	RecipientsPerMinute int `toml:"recipients_per_minute" range:"0,1000000"`
}

// DefaultMaxEntries is the default of [Config].MaxEntries.
const DefaultMaxEntries = 100_000

// Config says what is limited. The zero value limits nothing.
type Config struct {
	Client  Limits
	Network Limits
	Login   LoginLimits

	// MaxConnections bounds the open connections of all clients together. Zero or
	// less is no limit.
	MaxConnections int

	// Exempt clients have no limits. Their connections still count towards
	// MaxConnections.
	Exempt []netip.Prefix

	// Uncounted are clients whose open connections count towards MaxConnections
	// only, for example those of this machine. All other limits apply to them.
	Uncounted []netip.Prefix

	// MaxEntries bounds the table of clients, networks and logins, which takes about
	// 150 bytes an entry. When it is full, the entry that was not seen for longest
	// is dropped. Entries with open connections are never dropped, and may exceed
	// the bound. Zero or less means [DefaultMaxEntries].
	MaxEntries int

	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// The values of Result.Limit.
const (
	Connections          = "connections"
	ConnectionsPerMinute = "connections_per_minute"
	MessagesPerMinute    = "messages_per_minute"
	RecipientsPerMinute  = "recipients_per_minute"
	ErrorsPerMinute      = "errors_per_minute"
)

// The values of Result.Scope.
const (
	Client  = "client"
	Network = "network"
	Login   = "login"
	All     = "all" // clients together, for MaxConnections
)

// Result says whether an event is allowed. The zero Result allows it.
type Result struct {
	// Limit names the limit that was reached, and Scope says whose it is.
	Limit, Scope string

	// Value is the limit's value.
	Value int

	// RetryAfter is when the event will be allowed if no other one comes first. It
	// is 0 for open connections: one of them has to end.
	RetryAfter time.Duration
}

// Kinds returns a Result with Limit and Scope for each limit that there is.
func Kinds() []Result {
	var all []Result
	for _, scope := range scopeNames {
		if scope == Login {
			all = append(all, Result{Limit: MessagesPerMinute, Scope: scope}, Result{Limit: RecipientsPerMinute, Scope: scope})
			continue
		}
		for _, limit := range append([]string{Connections}, rateNames[:]...) {
			all = append(all, Result{Limit: limit, Scope: scope})
		}
	}
	return append(all, Result{Limit: Connections, Scope: All})
}

// Allowed reports whether no limit was reached.
func (r Result) Allowed() bool { return r.Limit == "" }

// Key returns the limit's name in spamgate's configuration, for example
// "client_connections". It is empty for the zero Result.
func (r Result) Key() string {
	switch {
	case r.Allowed():
		return ""
	case r.Scope == All:
		return "max_" + r.Limit
	}
	return r.Scope + "_" + r.Limit
}

// String returns the limit in words, "messages per minute of a network: 30", or
// "allowed" for the zero Result.
func (r Result) String() string {
	if r.Allowed() {
		return "allowed"
	}
	whose := map[string]string{Client: "a client", Network: "a network", Login: "a login", All: "all clients"}[r.Scope]
	return fmt.Sprintf("%s of %s: %d", strings.ReplaceAll(r.Limit, "_", " "), whose, r.Value)
}
