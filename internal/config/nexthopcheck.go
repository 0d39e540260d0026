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

// nextHop checks [next_hop], and then the next hops of the [[listener]] tables.
func (d *document) nextHop() {
	d.hopTable("next_hop", &d.cfg.NextHop)
	sound := true
	for path := range d.failed {
		sound = sound && !strings.HasPrefix(path, "next_hop")
	}
	for i := range d.cfg.Listeners {
		n, path := d.cfg.Listeners[i].NextHop, element("listener", i)+".next_hop"
		switch {
		case n == nil:
		case sound:
			d.inheritHop(path, n)
			d.hopTable(path, n)
		default:
			d.nextHopAddr(path, n) // what it has of [next_hop] is at fault there
		}
	}
}

// hopTable checks one table with a next hop.
func (d *document) hopTable(path string, n *NextHop) {
	if d.pos.has(path + ".merge") {
		d.warn(path+".merge", "has no effect: all recipients of a message share one transaction, and none receives it twice", "remove the line")
	}
	n.Merge = false
	d.nextHopNames(path, n)
	if d.nextHopAddr(path, n) {
		d.nextHopTLS(path, n)
	}
}

// inheritHop sets what a listener's next hop has from [next_hop], as it is after its check.
// It drops settings for TLS that cannot apply, such as tls = "required" to a unix socket.
func (d *document) inheritHop(path string, n *NextHop) {
	from := d.cfg.NextHop
	own := func(key string) bool { return d.pos.has(path + "." + key) }
	if d.pos.hopAddr(path) == "next_hop.addr" {
		n.Addr = slices.Clone(from.Addr)
	}
	if !own("tls_name") {
		n.TLSName = from.TLSName
	}
	if !own("tls_pins") {
		n.TLSPins = slices.Clone(from.TLSPins)
	}
	if !own("tls") && (n.has(schemeMaildir) || n.has(schemeLMTPUnix)) {
		n.TLS = tlsNone
	}
	verified := n.TLS == "required" || n.has(schemeSMTPS)
	if !own("tls_ca") && (!verified || own("tls_pins")) {
		n.TLSCA = ""
	}
	if !own("tls_pins") && (!verified || own("tls_ca")) {
		n.TLSPins = nil
	}
	if !own("tls_name") && !verified {
		n.TLSName = ""
	}
}

// nextHopAddr checks and normalises the addresses, and whether they go together.
func (d *document) nextHopAddr(path string, n *NextHop) bool {
	key := d.pos.hopAddr(path)
	if len(n.Addr) == 0 {
		d.fail(key, "is empty", nextHopHint)
		return false
	}
	good := !d.failedBelow(key)
	for i, s := range n.Addr {
		path := d.elementOrKey(key, i)
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
	return good && d.oneProtocol(key, n.Addr)
}

// oneProtocol checks that each next hop can take a message in place of another:
// SMTP replies once for a message, LMTP once for each recipient, which the gate
// remembers for the client's retry.
func (d *document) oneProtocol(key string, addrs []string) bool {
	first := protocol(addrs[0])
	for i, addr := range addrs {
		path := d.elementOrKey(key, i)
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
func (d *document) nextHopNames(path string, n *NextHop) {
	if n.TLSName != "" {
		name, err := normalHost(n.TLSName)
		if err != nil {
			d.fail(path+".tls_name", fmt.Sprintf("%q %v", n.TLSName, err), `write a name such as "mail.example.com"`)
		}
		n.TLSName = name
	}
	for i, pin := range n.TLSPins {
		path := element(path+".tls_pins", i)
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
func (d *document) nextHopTLS(path string, n *NextHop) {
	if n.TLS == "implicit" {
		d.fail(path+".tls", `cannot be "implicit": "smtps://" in addr means that`, `write "smtps://HOST:PORT" in addr, and remove the line`)
		return
	}
	if !d.oneOf(path+".tls", n.TLS, "none", "opportunistic", "required") {
		return
	}
	if n.TLS != "none" {
		if _, ok := n.Maildir(); ok {
			d.fail(path+".tls", fmt.Sprintf("cannot be %q for a Maildir", n.TLS), `write "none", or a server in addr`)
		} else if n.has(schemeLMTPUnix) {
			d.fail(path+".tls", fmt.Sprintf("cannot be %q for a unix socket, which leads only to this machine", n.TLS), `write "none", or "lmtp://HOST:PORT" in addr`)
		}
	}
	what, hint := `has no effect without TLS`, `write tls = "required", or "smtps://HOST:PORT" in addr, or remove the line`
	if n.TLS == "opportunistic" {
		what, hint = `has no effect with tls = "opportunistic", which accepts any certificate`, `write tls = "required", or remove the line`
	}
	verified := n.TLS == "required" || n.has(schemeSMTPS)
	for key, set := range map[string]bool{"tls_ca": n.TLSCA != "", "tls_name": n.TLSName != "", "tls_pins": len(n.TLSPins) > 0} {
		if set && !verified {
			d.fail(path+"."+key, what, hint)
		}
	}
	if n.TLSCA != "" && len(n.TLSPins) > 0 {
		d.fail(path+".tls_ca", "has no effect with tls_pins: a pinned key needs no authority", "remove one of the two")
	}
}
