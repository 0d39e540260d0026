package wire

import (
	"net/netip"
	"testing"
)

// TestNamed: only the address of a client that a proxy has named is that of a client.
func TestNamed(t *testing.T) {
	peer, other := netip.MustParseAddrPort("192.0.2.1:1000"), netip.MustParseAddrPort("198.51.100.7:25")
	trusted := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, tt := range []struct {
		what    string
		proxies []netip.Prefix
		byPROXY bool
		xclient *Client
		named   bool
	}{
		{"nobody", nil, false, nil, false},
		{"PROXY", nil, true, nil, true},
		{"PROXY names a trusted proxy, which has named nobody", trusted, true, nil, false},
		{"PROXY names a trusted proxy, which has named a client", trusted, true, &Client{Addr: other}, true},
		{"a trusted proxy has named nobody", trusted, false, nil, false},
		{"XCLIENT", trusted, false, &Client{Addr: other}, true},
		{"XCLIENT without ADDR", trusted, false, &Client{Addr: peer, Login: "ann"}, false},
		{"XCLIENT ADDR=[UNAVAILABLE]", trusted, false, &Client{}, false},
		{"PROXY, and XCLIENT ADDR=[UNAVAILABLE]", trusted, true, &Client{Addr: netip.AddrPortFrom(netip.Addr{}, 25)}, false},
	} {
		c := &Conn{identity: identity{cfg: &Config{Rules: Rules{TrustedProxies: tt.proxies}}, peer: peer, named: tt.byPROXY, xclient: tt.xclient}}
		if c.Named() != tt.named {
			t.Errorf("%s: named %v", tt.what, c.Named())
		}
	}
}
