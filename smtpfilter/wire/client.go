package wire

import "net/netip"

// Client is the client of a connection: the peer, or the one that a trusted proxy
// names with the PROXY protocol or XCLIENT.
type Client struct {
	Addr  netip.AddrPort // the zero AddrPort if unknown
	Local netip.AddrPort // the address that it connected to
	Name  string         // its name in DNS, if a proxy has sent it
	Helo  string         // its name in HELO or EHLO
	Proto string         // "SMTP" or "ESMTP"
	Login string         // as whom a proxy has authenticated it, or ""
	ID    string         // the message's id at the proxy (XFORWARD's IDENT)
}
