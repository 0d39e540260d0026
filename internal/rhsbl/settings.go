package rhsbl

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Settings say what is served to whom.
type Settings struct {
	// Zone is the zone of domains, HashedZone that of addresses, such as
	// "dbl.example.org". One of the two may be empty, and neither is below the other.
	Zone, HashedZone string

	// Hostname is the name of the server in NS and SOA.
	Hostname string

	// Contact ends the TXT of listed names, unless it is empty.
	Contact string

	Lists []string // the lists that count; none: all

	// TTL is how long an answer may be kept, in whole seconds.
	TTL time.Duration

	// AllowClients may ask.
	AllowClients []netip.Prefix

	// NetworkAnswersPerSecond is how many answers over UDP a network gets (/24, or /48 of
	// IPv6), and a second's more at once. Zero means any number.
	NetworkAnswersPerSecond int

	// MaxConnections is how many clients may be connected over TCP. Zero means any number.
	MaxConnections int
}

// check returns what is wrong with the settings. It writes the names in lower case with a
// dot at the end.
func (c *Settings) check() error {
	var errs []error
	for _, name := range []*string{&c.Zone, &c.HashedZone, &c.Hostname} {
		if *name == "" {
			continue
		}
		if _, ok := dns.IsDomainName(*name); !ok || strings.ContainsAny(*name, "\\ ") {
			errs = append(errs, fmt.Errorf("serving DNS: %q is not a domain name", *name))
		}
		*name = strings.ToLower(dns.Fqdn(*name))
	}
	if c.Hostname == "" {
		c.Hostname = "localhost."
	}
	switch {
	case c.Zone == "" && c.HashedZone == "":
		errs = append(errs, errors.New("serving DNS: there is no zone: set zone, hashed_zone or both"))
	case c.Zone == "" || c.HashedZone == "":
	case dns.IsSubDomain(c.Zone, c.HashedZone) || dns.IsSubDomain(c.HashedZone, c.Zone):
		errs = append(errs, fmt.Errorf("serving DNS: hashed_zone %q and zone %q are one below the other: give each a name of its own", c.HashedZone, c.Zone))
	}
	c.Lists = slices.Clone(c.Lists)
	return errors.Join(errs...)
}

// allows reports whether a client may ask.
func (c *Settings) allows(client netip.Addr) bool {
	return slices.ContainsFunc(c.AllowClients, func(p netip.Prefix) bool { return p.Contains(client) })
}
