package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/internal/text"
)

const nextHopHint = `write "smtp://HOST:PORT", "smtps://HOST:PORT", "lmtp://HOST:PORT", "lmtp+unix:SOCKET" or "maildir:DIRECTORY"`

// nextHop checks [next_hop].
func (d *document) nextHop() {
	n := &d.cfg.NextHop
	if d.at.has("next_hop.merge") {
		d.warn("next_hop.merge", "has no effect: all recipients of a message share one transaction, and none receives it twice", "remove the line")
		n.Merge = false
	}
	d.nextHopNames()
	if d.nextHopAddr() {
		d.nextHopTLS()
	}
}

// nextHopAddr checks and normalises the addresses, and whether they go together.
func (d *document) nextHopAddr() bool {
	n := &d.cfg.NextHop
	if len(n.Addr) == 0 {
		d.fail("next_hop.addr", "is empty", nextHopHint)
		return false
	}
	good := !d.failedBelow("next_hop.addr")
	for i, s := range n.Addr {
		path := d.elementOrKey("next_hop.addr", i)
		addr, err := normalNextHop(s)
		if err != nil {
			if errors.Is(err, errNextHopUser) {
				s = text.ShownURL(s) // without the password
			}
			d.fail(path, fmt.Sprintf("%q %v", s, err), nextHopHint)
			good = false
			continue
		}
		n.Addr[i] = addr
		if slices.Contains(n.Addr[:i], addr) {
			d.twice(path, s)
			good = false
		}
	}
	return good && d.oneProtocol(n.Addr)
}

// oneProtocol checks that each next hop can take a message in place of another:
// SMTP replies once for a message, LMTP once for each recipient, which the gate
// remembers for the client's retry.
func (d *document) oneProtocol(addrs []string) bool {
	first := protocol(addrs[0])
	for i, addr := range addrs {
		path := d.elementOrKey("next_hop.addr", i)
		switch p := protocol(addr); {
		case len(addrs) > 1 && strings.HasPrefix(addr, schemeMaildir):
			d.fail(path, fmt.Sprintf("%q is one of several next hops; a Maildir must be the only one", addr), "remove it, or all others")
		case p != first:
			d.fail(path, fmt.Sprintf("%q speaks %s, but %q %s: one cannot take the messages of the other", addr, p, addrs[0], first),
				"keep those of one protocol")
		default:
			continue
		}
		return false
	}
	return true
}

// nextHopNames normalises the names and keys by which the gate knows the next
// hop's certificate.
func (d *document) nextHopNames() {
	n := &d.cfg.NextHop
	if n.TLSName != "" {
		name, err := normalHost(n.TLSName)
		if err != nil {
			d.fail("next_hop.tls_name", fmt.Sprintf("%q %v", n.TLSName, err), `write a name such as "mail.example.com"`)
		}
		n.TLSName = name
	}
	for i, pin := range n.TLSPins {
		path := element("next_hop.tls_pins", i)
		normal := strings.ToLower(strings.ReplaceAll(pin, ":", ""))
		sum, err := hex.DecodeString(normal)
		switch {
		case err != nil || len(sum) != 32:
			d.fail(path, fmt.Sprintf("%q is not a SHA-256 sum", pin), `write 64 hexadecimal digits, with or without ":" between them`)
		case slices.Contains(n.TLSPins[:i], normal):
			d.twice(path, pin)
		}
		n.TLSPins[i] = normal
	}
}

// nextHopTLS checks tls and the keys that depend on it.
func (d *document) nextHopTLS() {
	n := &d.cfg.NextHop
	if n.TLS == "implicit" {
		d.fail("next_hop.tls", `cannot be "implicit": "smtps://" in addr means that`, `write "smtps://HOST:PORT" in addr, and remove the line`)
		return
	}
	if !d.oneOf("next_hop.tls", n.TLS, "none", "opportunistic", "required") {
		return
	}
	if n.TLS != "none" {
		if _, ok := n.Maildir(); ok {
			d.fail("next_hop.tls", fmt.Sprintf("cannot be %q for a Maildir", n.TLS), `write "none", or a server in addr`)
		} else if n.has(schemeLMTPUnix) {
			d.fail("next_hop.tls", fmt.Sprintf("cannot be %q for a unix socket, which leads only to this machine", n.TLS), `write "none", or "lmtp://HOST:PORT" in addr`)
		}
	}
	what, hint := `has no effect without TLS`, `write tls = "required", or "smtps://HOST:PORT" in addr, or remove the line`
	if n.TLS == "opportunistic" {
		what, hint = `has no effect with tls = "opportunistic", which accepts any certificate`, `write tls = "required", or remove the line`
	}
	verified := n.TLS == "required" || n.has(schemeSMTPS)
	for key, set := range map[string]bool{"tls_ca": n.TLSCA != "", "tls_name": n.TLSName != "", "tls_pins": len(n.TLSPins) > 0} {
		if set && !verified {
			d.fail("next_hop."+key, what, hint)
		}
	}
	if n.TLSCA != "" && len(n.TLSPins) > 0 {
		d.fail("next_hop.tls_ca", "has no effect with tls_pins: a pinned key needs no authority", "remove one of the two")
	}
}
