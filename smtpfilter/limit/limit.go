// Package limit holds clients to what they may do: connections open at a time,
// and connections, messages, recipients and errors a minute, each for one client
// and for the network that it is in. The counts are in memory, in a table of
// bounded size.
//
// A client is an IPv4 address or an IPv6 /64, within which a host chooses its
// addresses itself and changes them (RFC 4862, RFC 8981). Its network is the /24
// or the /48. An IPv4-mapped IPv6 address is the IPv4 address, and a zone is left
// out.
//
// Rates are held with the generic cell rate algorithm of ITU-T I.371, in its form
// as virtual scheduling, which allows what a token bucket does: with a limit of N
// a minute, N events may come at once, and another one every 60/N seconds. So t
// minutes see at most N + t*N events, wherever they begin. One number a rate
// remembers all of that. Counting anew each minute would take two, and let 2*N
// through around the minute's end.
//
// What is refused uses nothing up. A client that goes on asking is served at the
// rate of its limit, and is not locked out.
package limit

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Limits are what one client, or one network, may do. Zero or less is no limit.
type Limits struct {
	// Connections are those open at a time.
	Connections int

	// The others are a minute. Errors are what the caller takes for such, see
	// [Limiter.Error].
	ConnectionsPerMinute int
	MessagesPerMinute    int
	RecipientsPerMinute  int
	ErrorsPerMinute      int
}

// DefaultMaxEntries is how many clients and networks a table holds unless its
// [Config] says otherwise.
const DefaultMaxEntries = 100_000

// Config says what is limited. Its zero value limits nothing.
type Config struct {
	Client  Limits
	Network Limits

	// MaxConnections are those open at a time, of all clients. Zero or less is
	// no limit.
	MaxConnections int

	// Exempt are clients that no limit holds. Their connections count towards
	// MaxConnections all the same.
	Exempt []netip.Prefix

	// Uncounted are clients whose open connections count towards MaxConnections
	// alone, such as those of this machine. The other limits hold for them.
	Uncounted []netip.Prefix

	// MaxEntries bounds the table of clients and networks, which takes about
	// 150 bytes an entry. Where it is full of clients that have used something
	// of their limits, the one not seen for longest is forgotten. Those with open
	// connections are not, and may exceed it. Zero or less means
	// [DefaultMaxEntries].
	MaxEntries int

	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// The names in Verdict.Limit.
const (
	Connections          = "connections"
	ConnectionsPerMinute = "connections_per_minute"
	MessagesPerMinute    = "messages_per_minute"
	RecipientsPerMinute  = "recipients_per_minute"
	ErrorsPerMinute      = "errors_per_minute"
)

// The names in Verdict.Scope.
const (
	Client  = "client"
	Network = "network"
	All     = "all" // clients, of the limit MaxConnections
)

// Verdict says whether something is allowed. The zero Verdict allows it.
type Verdict struct {
	// Limit is the limit that was reached, and Scope whose.
	Limit, Scope string

	// Value is that limit.
	Value int

	// RetryAfter is when it will be allowed if nothing else is until then. For
	// connections open at a time it is 0: when one of them ends.
	RetryAfter time.Duration
}

// Allowed reports that no limit was reached.
func (v Verdict) Allowed() bool { return v.Limit == "" }

// Key is the limit's name in spamgate's configuration, "client_connections" for
// instance. It is empty for the zero Verdict.
func (v Verdict) Key() string {
	switch {
	case v.Allowed():
		return ""
	case v.Scope == All:
		return "max_" + v.Limit
	}
	return v.Scope + "_" + v.Limit
}

// String is the limit in words: "messages per minute of a network: 30", and
// "allowed" for the zero Verdict.
func (v Verdict) String() string {
	if v.Allowed() {
		return "allowed"
	}
	whose := map[string]string{Client: "a client", Network: "a network", All: "all clients"}[v.Scope]
	return fmt.Sprintf("%s of %s: %d", strings.ReplaceAll(v.Limit, "_", " "), whose, v.Value)
}
