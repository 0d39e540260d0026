package policyservice

import (
	"net/netip"
	"strconv"
	"strings"

	"spamgate/blocklist/sender"
)

// path returns an address as it stands in an SMTP command. Postfix sends a local part without
// its quotes ("internal form"): "john smith"@example.com is john smith@example.com. A valid
// address with quotes stays as it is.
func path(address []byte) string {
	s := string(address)
	pos := strings.LastIndexByte(s, '@')
	if pos <= 0 {
		return s
	}
	if s[0] == '"' {
		if _, err := sender.Parse(s); err == nil {
			return s
		}
	}
	return sender.QuoteLocal(s[:pos]) + s[pos:]
}

// client returns the address of the SMTP client. It is not valid if Postfix does not know the
// address, and the port is 0 if Postfix does not know the port.
func client(address, port []byte) netip.AddrPort {
	s := string(address)
	if len(s) > 5 && strings.EqualFold(s[:5], "IPv6:") {
		s = s[5:]
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.AddrPort{}
	}
	n, err := strconv.ParseUint(string(port), 10, 16)
	if err != nil {
		n = 0
	}
	return netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(n))
}
