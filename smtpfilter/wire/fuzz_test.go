package wire

import (
	"net/netip"
	"testing"
)

// FuzzProxyHeader looks for headers that are read further than they are long, or
// give an address that is none.
func FuzzProxyHeader(f *testing.F) {
	for _, seed := range []string{
		"PROXY TCP4 192.0.2.1 198.51.100.1 2500 25\r\nHELO x\r\n",
		"PROXY TCP6 2001:db8::1 2001:db8::2 2500 25\r\n",
		"PROXY UNKNOWN\r\n",
		"PROXY TCP4 192.0.2.1 198.51.100.1 2500 025\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\x09\xc4\x00\x19",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x00\x00\x03\x04\x00\x00",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x31\x00\xd8" + string(make([]byte, 216)),
		"\r\n\r\n\x00\r\nQUIT\n\x21\x12\x00\x0c" + string(make([]byte, 12)),
		"HELO client.example\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := proxyHeaderLen(data)
		if err != nil || n == 0 || n > len(data) {
			return
		}
		if n > maxProxyBytes {
			t.Fatalf("a header of %d bytes", n)
		}
		client, local, err := parseProxyHeader(data[:n])
		for _, a := range []netip.AddrPort{client, local} {
			if err == nil && a.IsValid() && (a.Addr().Is4In6() || a.Addr().Zone() != "") {
				t.Errorf("%q: address %s", data[:n], a)
			}
		}
		if client.IsValid() != local.IsValid() {
			t.Errorf("%q: %s to %s", data[:n], client, local)
		}
	})
}

// FuzzAttributes looks for attributes of XCLIENT and XFORWARD that pass and could
// end a line of a log or a command to the next hop.
func FuzzAttributes(f *testing.F) {
	for _, seed := range []string{
		"NAME=client.example ADDR=192.0.2.1 PORT=25 PROTO=ESMTP HELO=x LOGIN=a+2Bb",
		"ADDR=IPV6:2001:db8::1 DESTADDR=[UNAVAILABLE] DESTPORT=25",
		"ADDR=IPV6:::ffff:192.0.2.1 IDENT=+0A SOURCE=LOCAL",
		"NAME=[TEMPUNAVAIL] HELO=+C3+A9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		var c Client
		if !c.setAll(args, xclientAttributes+" "+xforwardAttributes) {
			return
		}
		for _, s := range []string{c.Name, c.Helo, c.Proto, c.Login, c.ID} {
			if !isText(s) || len(s) > 255 {
				t.Errorf("%q gives %q", args, s)
			}
		}
		if a := c.Addr.Addr(); a.Zone() != "" || a.Is4In6() {
			t.Errorf("%q gives %s", args, a)
		}
	})
}
