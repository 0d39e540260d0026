package config

import (
	"fmt"
	"net"
	"reflect"
	"time"

	"spamgate/internal/text"
)

// Publish says where others fetch the lists with publish = true.
type Publish struct {
	Addr string `toml:"addr"` // "host:port"; empty: the gate serves no lists

	TLSCert Files `toml:"tls_cert"` // as those of an Endpoint
	TLSKey  Files `toml:"tls_key"`

	// Key is the absolute path of the secret key that signs, and Expires how long a
	// signature is good; 0 means for ever.
	Key     string        `toml:"key"`
	Expires time.Duration `toml:"expires" range:"0,3650d"`

	// Tokens is the absolute path of a file with the tokens of those who may fetch; empty:
	// everyone may.
	Tokens string `toml:"tokens"`
}

const publishAddr = "publish.addr"

// leastExpires is the shortest time for which a signature can be good.
const leastExpires = time.Hour

// publish checks [publish], after everything that takes addresses, and the lists.
func (d *document) publish() {
	p := &d.cfg.Publish
	d.files("publish.tls_cert", &p.TLSCert)
	d.files("publish.tls_key", &p.TLSKey)
	if p.Expires != 0 && p.Expires < leastExpires {
		d.fail("publish.expires", fmt.Sprintf("%q is less than an hour", text.Duration(p.Expires)), `write "7d", or "0" for signatures that are good for ever`)
	}
	published := d.publishedLists()
	if p.Addr == "" {
		if !d.failed[publishAddr] {
			d.idle("publish", reflect.TypeFor[Publish](), "has no effect without an address", `write addr = "HOST:PORT" in [publish], or remove the line`, "addr", "key")
		}
		return
	}
	if err := checkListen(p.Addr); err != nil || p.Addr == Systemd {
		what := fmt.Sprintf("%q %v", p.Addr, err)
		if err == nil {
			what = `cannot be "systemd": a socket that systemd passes belongs to [listen] or a [[listener]]`
		}
		d.fail(publishAddr, what, `write "0.0.0.0:8443", or "" to serve no lists`)
		return
	}
	d.takeWebAddr(takenAddr{p.Addr, publishAddr, "publish", "publish"})
	if p.Key == "" {
		d.fail("publish.key", "is missing", `write key = "publish.key", and make it with: spamgate lists publish --new-key publish.key`)
	}
	if published == 0 {
		d.warn(publishAddr, "serves nothing, because no list has publish = true", "write publish = true in a [[list]], or remove the line")
	}
	d.publishTLS(p)
}

// publishTLS checks the certificates.
func (d *document) publishTLS(p *Publish) {
	const cert, key = "publish.tls_cert", "publish.tls_key"
	host, _, _ := net.SplitHostPort(p.Addr)
	d.certificates("publish", p.TLSCert, p.TLSKey)
	if len(p.TLSCert)+len(p.TLSKey) == 0 && !isLoopback(host) && !d.failedBelow(cert) && !d.failedBelow(key) {
		d.fail(cert, fmt.Sprintf("is missing: addr = %q is open beyond this machine, and gates fetch lists by https only", p.Addr),
			"write tls_cert and tls_key, or an address of this machine for a proxy here that speaks TLS")
	}
}

// publishedLists counts the lists that are published, and checks that they can be.
func (d *document) publishedLists() (n int) {
	for i, l := range d.cfg.Lists {
		if !l.Publish {
			continue
		}
		n++
		path := element("list", i) + ".publish"
		switch {
		case l.InDNS():
			d.fail(path, "has no effect with dns_zone: the gate has no entries of such a list", "remove the line")
		case d.cfg.Publish.Addr == "" && !d.failed[publishAddr]:
			d.warn(path, "has no effect without addr in [publish]", `write addr and key in [publish], or remove the line`)
		}
	}
	return n
}
