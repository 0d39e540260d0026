package config

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

const nextHopHint = `write "smtp://HOST:PORT", "smtps://HOST:PORT", "lmtp://HOST:PORT", "lmtp+unix:SOCKET" or "maildir:DIRECTORY"`

// nextHop checks [next_hop].
func (d *document) nextHop() {
	n := &d.cfg.NextHop
	d.oneOf("next_hop.balance", n.Balance, "priority", "round_robin")
	d.oneOf("next_hop.identity", n.Identity, "auto", "xclient", "xforward", "none")
	d.oneOf("next_hop.proxy", n.Proxy, "", "v1", "v2")
	d.between("next_hop.probe_interval", n.ProbeInterval, time.Second, time.Hour)
	d.between("next_hop.connect_timeout", n.ConnectTimeout, time.Second, 5*time.Minute)
	d.between("next_hop.reply_timeout", n.ReplyTimeout, time.Second, 10*time.Minute)
	d.within("next_hop.messages_per_connection", n.MessagesPerConnection, 0, 1000000)
	if d.at.has("next_hop.merge") {
		d.warn("next_hop.merge", "has no effect: all recipients of a message go in one transaction, and nobody gets it twice", "remove the line")
		n.Merge = false
	}
	d.nextHopNames()
	if !d.nextHopAddr() {
		return // what else is right depends on it
	}
	d.nextHopTLS()
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
			d.fail(path, fmt.Sprintf("%q %v", s, err), nextHopHint)
			good = false
			continue
		}
		n.Addr[i] = addr
		if slices.Contains(n.Addr[:i], addr) {
			d.fail(path, fmt.Sprintf("%q is there twice", s), "remove one")
			good = false
		}
	}
	return good && d.oneProtocol(n.Addr)
}

// oneProtocol checks that a message which one next hop cannot take can go to any
// other: SMTP has one reply for a message, and LMTP one for each recipient, which the
// gate remembers for the client's retry.
func (d *document) oneProtocol(addrs []string) bool {
	first := protocol(addrs[0])
	for i, addr := range addrs {
		path := d.elementOrKey("next_hop.addr", i)
		switch p := protocol(addr); {
		case len(addrs) > 1 && strings.HasPrefix(addr, schemeMaildir):
			d.fail(path, fmt.Sprintf("%q is not the only next hop, and a Maildir must be", addr), "remove it, or all others")
		case p != first:
			d.fail(path, fmt.Sprintf("%q speaks %s, and %q %s: a message could not go to the one in place of the other", addr, p, addrs[0], first),
				"keep those of one protocol")
		default:
			continue
		}
		return false
	}
	return true
}

// nextHopNames normalises what the next hop's certificate is known by.
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
			d.fail(path, fmt.Sprintf("%q is no SHA-256 sum", pin), `write 64 hexadecimal digits, with or without ":" between them`)
		case slices.Contains(n.TLSPins[:i], normal):
			d.fail(path, fmt.Sprintf("%q is there twice", pin), "remove one")
		}
		n.TLSPins[i] = normal
	}
}

// nextHopTLS checks tls and what goes with it.
func (d *document) nextHopTLS() {
	n := &d.cfg.NextHop
	if n.TLS == "implicit" {
		d.fail("next_hop.tls", `"implicit" is what "smtps://" says`, `write "smtps://HOST:PORT" in addr, and remove the line`)
		return
	}
	if !d.oneOf("next_hop.tls", n.TLS, "none", "opportunistic", "required") {
		return
	}
	if n.TLS != "none" {
		if _, ok := n.Maildir(); ok {
			d.fail("next_hop.tls", fmt.Sprintf("%q cannot be, as the next hop is a Maildir", n.TLS), `write "none", or a server in addr`)
		} else if n.has(schemeLMTPUnix) {
			d.fail("next_hop.tls", fmt.Sprintf("%q cannot be over a unix socket, which leads to this machine only", n.TLS), `write "none", or "lmtp://HOST:PORT" in addr`)
		}
	}
	what, hint := `is of no use without TLS`, `write tls = "required", or "smtps://HOST:PORT" in addr, or remove the line`
	if n.TLS == "opportunistic" {
		what, hint = `is of no use with tls = "opportunistic", which takes any certificate`, `write tls = "required", or remove the line`
	}
	verified := n.TLS == "required" || n.has(schemeSMTPS)
	for _, k := range []struct {
		key string
		set bool
	}{
		{"tls_ca", n.TLSCA != ""},
		{"tls_name", n.TLSName != ""},
		{"tls_pins", len(n.TLSPins) > 0},
	} {
		if k.set && !verified {
			d.fail("next_hop."+k.key, what, hint)
		}
	}
	if n.TLSCA != "" && len(n.TLSPins) > 0 {
		d.fail("next_hop.tls_ca", "is of no use with tls_pins: a key that is pinned needs no authority", "remove one of the two")
	}
}
