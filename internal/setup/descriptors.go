package setup

import (
	"fmt"
	"math"
	"net/netip"
	"syscall"

	"spamgate/internal/config"
	"spamgate/smtpfilter/limit"
)

// The file descriptors that a running gate needs.
const (
	// perClient counts a listener's client's own connection and one to the next hop.
	perClient = 2

	// perQuestioner counts the connection of a mail server to a door.
	perQuestioner = 1

	// reserved is for listeners, lists while they are read, the log, the state directory,
	// watches, DNS queries, metrics and the admin socket.
	reserved = 128

	// MetricsConnections is the most that those have who ask for metrics. Prometheus asks a
	// few times a minute.
	MetricsConnections = 64

	// ConsoleConnections is the most that the console accepts.
	ConsoleConnections = 256

	// PublishConnections is the most that those who fetch lists may have. Each waits with
	// one for a list.
	PublishConnections = 1024

	// reservedPerHop is for idle connections to one next hop, see package nexthop.
	reservedPerHop = 32
)

// The bounds of max_connections = "auto", for one listener or door.
const (
	usualConnections = 1000 // at most 10 MiB of memory while they are idle
	leastConnections = 10
)

// DescriptorLimit returns the number of file descriptors that the process may open. The Go
// runtime has raised the soft limit to just below the hard one by then; child processes get
// the original soft limit (syscall/rlimit.go).
func DescriptorLimit() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return math.MaxInt32 // unknown, so it limits nothing
	}
	return int(min(uint64(r.Cur), math.MaxInt32))
}

// opened is a listener or door, as far as it needs descriptors.
type opened struct {
	max  config.Connections
	each int // descriptors of a connection
}

// allOpened returns all listeners and doors.
func allOpened(c *config.Config) (all []opened) {
	for _, l := range c.Listeners {
		all = append(all, opened{l.MaxConnections, perClient})
	}
	for _, d := range c.Doors {
		all = append(all, opened{d.MaxConnections, perQuestioner})
	}
	return all
}

// capacity returns how many of some descriptors are left for connections.
func capacity(c *config.Config, descriptors int) int {
	return max(0, descriptors-others(c))
}

// others returns how many descriptors are not for mail.
func others(c *config.Config) int {
	n := reserved + reservedPerHop*len(c.HopAddrs())
	if c.Console.Addr != "" {
		n += ConsoleConnections
	}
	if c.Publish.Addr != "" {
		n += PublishConnections
	}
	return n
}

// AutoConnections returns the value of max_connections = "auto": the usual number or, if there
// are too few descriptors for that, an equal share of those that the listeners and doors with a
// number of their own leave.
func AutoConnections(c *config.Config, descriptors int) int {
	room, sharing := capacity(c, descriptors), 0
	for _, o := range allOpened(c) {
		if o.max == config.AutoConnections {
			sharing += o.each
		} else {
			room -= int(o.max) * o.each
		}
	}
	return min(max(room/max(sharing, 1), leastConnections), usualConnections)
}

// DescriptorWarning returns a warning if the process may open too few descriptors for what
// the configuration allows or for the usual number of clients, or else "".
func DescriptorWarning(c *config.Config, descriptors int) string {
	auto := AutoConnections(c, descriptors)
	connections, needed, usual, reduced := 0, 0, 0, false
	for _, o := range allOpened(c) {
		n := int(o.max)
		if o.max == config.AutoConnections {
			n, reduced = auto, auto < usualConnections
		}
		if n == 0 {
			return "" // the operator has chosen no limit
		}
		connections += n
		needed += n * o.each
		usual += usualConnections * o.each
	}
	const remedy = "raise the limit (LimitNOFILE= in the unit, or ulimit -n)"
	others := others(c)
	switch {
	case needed > capacity(c, descriptors):
		return fmt.Sprintf("max_connections is more than the process has file descriptors for: %d connections can take %d, and it may open %d; %s, or write a smaller max_connections",
			connections, needed+others, descriptors, remedy)
	case reduced:
		each := "listener"
		if len(c.Doors) > 0 {
			each = "listener and door"
		}
		return fmt.Sprintf(`max_connections = "auto" is only %d for each %s, since the process may open %d files; %s: %d is enough for %d`,
			auto, each, descriptors, remedy, usual+others, usualConnections)
	}
	return ""
}

// loopback holds the networks whose connections are not counted by client: all programs of
// this machine share them.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// Limits returns the limits for a listener's clients. Auto is the value of max_connections =
// "auto".
func Limits(l config.Listener, auto int) limit.Config {
	return limit.Config{
		Client:         l.Client,
		Network:        l.Network,
		Login:          l.Login,
		MaxConnections: l.MaxConnections.Number(auto),
		Exempt:         l.LimitsExempt,
		Uncounted:      loopback,
	}
}
