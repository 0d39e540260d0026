package clientname

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	// minTTL and maxTTL bound how long an answer is cached, whatever its TTL.
	minTTL = 10 * time.Second
	maxTTL = time.Hour

	// defaultTTL is for results without a TTL: a name of the hosts file, and a
	// query without an answer (RFC 2308, section 7, allows 5 minutes).
	defaultTTL = time.Minute
)

// lookup returns the name of a client, "" if it has none or none was found, and how
// long to cache that.
func lookup(ctx context.Context, dial Dial, addr netip.Addr) (name string, ttl time.Duration) {
	var least leastTTL
	// Each lookup has its own Resolver, so all answers on its connections are about
	// this client. Only Go's own resolver uses Dial.
	r := &net.Resolver{PreferGo: true, Dial: least.dial(dial)}
	name, err := confirmed(ctx, r, addr)
	var failure *net.DNSError
	if errors.As(err, &failure) && !failure.IsNotFound {
		return "", defaultTTL
	}
	return name, least.bounded()
}

// confirmed returns the name of addr in DNS, if that name has this address.
func confirmed(ctx context.Context, r *net.Resolver, addr netip.Addr) (string, error) {
	names, err := r.LookupAddr(ctx, addr.String())
	if err != nil || len(names) == 0 {
		return "", err
	}
	name := strings.TrimSuffix(names[0], ".")
	if !valid(name) {
		return "", nil
	}
	family := "ip4"
	if addr.Is6() {
		family = "ip6"
	}
	// The final dot keeps the "search" domains of resolv.conf out.
	addrs, err := r.LookupNetIP(ctx, family, name+".")
	if err != nil || !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return withoutZone(a) == addr }) {
		return "", err
	}
	return name, nil
}

// valid reports whether a name consists of letters, digits, hyphens, underscores and
// dots. The mail server receives it as an argument of a command.
func valid(name string) bool {
	odd := func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	}
	return name != "" && !strings.ContainsFunc(name, odd)
}
