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
	// leastLife and mostLife bound how long an answer is kept, whatever DNS says.
	leastLife = 10 * time.Second
	mostLife  = time.Hour

	// unknownLife is how long one is kept of which DNS does not say: a name of
	// the hosts file, and a question that got no answer (RFC 2308, section 7,
	// allows 5 minutes).
	unknownLife = time.Minute
)

// lookup returns the name of a client, "" if it has none or none was found, and how
// long to keep that.
func lookup(ctx context.Context, dial Dial, addr netip.Addr) (name string, lasts time.Duration) {
	var heard lifetimes
	// A Resolver of its own: what is heard on its connections is about this
	// client. Only Go's own resolver uses Dial.
	r := &net.Resolver{PreferGo: true, Dial: heard.dial(dial)}
	name, err := confirmed(ctx, r, addr)
	var failure *net.DNSError
	if errors.As(err, &failure) && !failure.IsNotFound {
		return "", unknownLife
	}
	return name, heard.shortest()
}

// confirmed returns the name that addr has in DNS, if that has this address.
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
	// With the final dot the domains of "search" in resolv.conf are not tried.
	addrs, err := r.LookupNetIP(ctx, family, name+".")
	if err != nil || !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return plain(a) == addr }) {
		return "", err
	}
	return name, nil
}

// valid reports whether a name has letters, digits, hyphens, underscores and dots
// only. The mail server gets it as an argument of a command.
func valid(name string) bool {
	odd := func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	}
	return name != "" && !strings.ContainsFunc(name, odd)
}
