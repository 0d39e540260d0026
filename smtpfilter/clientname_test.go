package smtpfilter

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

// zone is a Resolver with a table.
type zone struct {
	names map[string][]string
	addrs map[string][]string
}

var errNoSuch = errors.New("no such host")

func (z zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	if names, ok := z.names[addr]; ok {
		return names, nil
	}
	return nil, errNoSuch
}

func (z zone) LookupNetIP(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
	for _, a := range z.addrs[host] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	if addrs == nil {
		return nil, errNoSuch
	}
	return addrs, nil
}

func TestLookupName(t *testing.T) {
	z := zone{
		names: map[string][]string{
			"192.0.2.1":   {"mx.example.com."},
			"192.0.2.2":   {"mx.example.com."},
			"192.0.2.3":   {"gone.example."},
			"192.0.2.4":   {"bad name.example."},
			"192.0.2.5":   {},
			"2001:db8::1": {"six.example.", "other.example."},
		},
		addrs: map[string][]string{
			"mx.example.com":   {"198.51.100.1", "::ffff:192.0.2.1"},
			"six.example":      {"2001:db8::1"},
			"bad name.example": {"192.0.2.4"},
		},
	}
	for addr, want := range map[string]string{
		"192.0.2.1":   "mx.example.com",
		"192.0.2.2":   "", // the name is somebody else's
		"192.0.2.3":   "", // the name has no address
		"192.0.2.4":   "", // no name
		"192.0.2.5":   "",
		"192.0.2.6":   "",
		"2001:db8::1": "six.example",
	} {
		if got := lookupName(context.Background(), z, netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}
