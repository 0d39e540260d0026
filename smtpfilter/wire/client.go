package wire

import "net/netip"

// Client is who speaks on a connection: as the connection itself shows, or as a
// trusted proxy has said by the PROXY protocol or XCLIENT.
type Client struct {
	Addr  netip.AddrPort // the zero AddrPort where unknown
	Local netip.AddrPort // the address that it has connected to
	Name  string         // its name in DNS; known only where a proxy has told it
	Helo  string         // what it calls itself, "" before HELO and EHLO
	Proto string         // "SMTP" or "ESMTP"
	Login string         // as whom a proxy has authenticated it, "" otherwise

	// ID is the message's id at the proxy (XFORWARD's IDENT).
	ID string
}
