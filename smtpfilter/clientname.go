package smtpfilter

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Resolver is what of a *net.Resolver finds a client's name.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// nameTimeout is how long a client's name is looked for. Without an answer the
// client is unknown; its mail passes all the same.
const nameTimeout = 3 * time.Second

// lookupName finds the name of a client: one that its address has in DNS, and
// that has the address, for everybody can give an address any name. "" means
// that there is none.
func lookupName(ctx context.Context, r Resolver, addr netip.Addr) string {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	names, err := r.LookupAddr(ctx, addr.String())
	if err != nil || len(names) == 0 {
		return ""
	}
	name := strings.TrimSuffix(names[0], ".")
	if !validHelo(name) {
		return ""
	}
	addrs, err := r.LookupNetIP(ctx, "ip", name)
	if err != nil || !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == addr }) {
		return ""
	}
	return name
}
