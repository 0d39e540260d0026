package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/dnslist"
)

// Values of dns_on_error.
const (
	onErrorAccept = "accept"
	onErrorDefer  = "defer"
)

// dnsList checks a list that is asked over DNS.
func (d *document) dnsList(path string, l *List) {
	l.DNSZone = d.dnsZone(path+".dns_zone", l.DNSZone)
	for i, code := range l.DNSCodes {
		if _, err := dnslist.ParseCodes([]string{code}); err != nil {
			what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "code "), ": use ")
			d.fail(d.elementOrKey(path+".dns_codes", i), what, `write an address such as "127.0.0.2", a range "127.0.1.2-127.0.1.99", or a bit "&8"`)
		}
	}
	if _, err := dnslist.ParseCodes(l.DNSCodes); err != nil && !d.failedBelow(path+".dns_codes") {
		d.fail(path+".dns_codes", "is too long: "+err.Error(), "write ranges")
	}
	if l.Type == typeAllow {
		d.fail(path+".type", `cannot be "allow" in a list in DNS: an answer can be forged on its way, and must not let mail in`,
			`write type = "block", or keep the allowed names in a file`)
	}
	for _, k := range []struct{ name, value string }{{"path", l.Path}, {"url", l.URL}} {
		if k.value != "" {
			d.fail(path+"."+k.name, "cannot be combined with dns_zone", "remove one of the two; give each list a [[list]] of its own")
		}
	}
	d.noEffect(path, l, "has no effect with dns_zone: the gate asks for single names, and reads no entries", "remove the line", fileKeys...)
	if l.OnProtected == store.HoldProtected {
		d.fail(path+".on_protected", `cannot be "hold" with dns_zone: there is no update to hold`,
			`write "skip", which does not ask for protected names, or "accept"`)
	}
	if l.DNSTest != "" {
		name, err := domainName(l.DNSTest)
		if err != nil || dnslist.CheckTest(name, l.DNSZone) != nil {
			d.fail(path+".dns_test", fmt.Sprintf("%q is not a name that can be asked for", l.DNSTest), `write the publisher's test point without the zone, such as "test" or "test.example.com"`)
		}
		l.DNSTest = name
	}
	if l.DNSOnError == onErrorDefer && l.Type == typeBlock && !l.refuses() {
		d.fail(path+".dns_on_error", `cannot be "defer" in a list that refuses no mail: no answer would be worse than a listing`,
			`write "accept", or action = "reject" or "defer"`)
	}
}

// dnsZone checks the zone of a list, and returns it in normal form.
func (d *document) dnsZone(path, zone string) string {
	const hint = `write the zone that the publisher names, such as "dbl.example.org"`
	name, err := domainName(zone)
	switch {
	case err != nil:
		d.fail(path, fmt.Sprintf("%q %v", zone, err), hint)
	case dnslist.CheckZone(name) != nil:
		what, _, _ := strings.Cut(dnslist.CheckZone(name).Error(), ": use ")
		d.fail(path, strings.TrimPrefix(what, "zone "), hint)
	}
	return name
}

// askedLists refuses lists that a DNS server cannot serve: those in DNS, for which it would
// answer what it is told, and those by recipient.
func (d *document) askedLists(door *Door) {
	for i, name := range door.Lists {
		pos := slices.IndexFunc(d.cfg.Lists, func(l List) bool { return l.Name == name })
		if pos < 0 {
			continue
		}
		switch path, l := element(door.Key("lists"), i), &d.cfg.Lists[pos]; {
		case l.InDNS():
			d.fail(path, fmt.Sprintf("%q is a list in DNS, which a DNS server cannot serve again", name), "remove it, and let clients ask its publisher")
		case l.PerRecipient:
			d.fail(path, fmt.Sprintf("%q is a list by recipient, and a question over DNS names no recipient", name), "remove it")
		}
	}
}

// refuses reports whether the list refuses senders at one of its stages.
func (l *List) refuses() bool {
	header := l.HeaderAction
	if header == "" {
		header = l.Action
	}
	return slices.Contains(l.Stage, stageEnvelope) && verdict.ActionOf(l.Action).Refuses() ||
		slices.Contains(l.Stage, stageHeader) && verdict.ActionOf(header).Refuses()
}

// resolver checks [resolver].
func (d *document) resolver() {
	const hint = `write "127.0.0.1:53", an array of such addresses, or [] for those of /etc/resolv.conf`
	addrs := d.cfg.Resolver.Addr
	if len(addrs) > 0 && !slices.ContainsFunc(d.cfg.Lists, func(l List) bool { return l.InDNS() || len(l.ProvenBy) > 0 }) {
		d.warn("resolver.addr", "has no effect without a list in DNS or with proven_by", "remove the line, or write a [[list]] with dns_zone or proven_by")
	}
	for i, s := range addrs {
		path := d.elementOrKey("resolver.addr", i)
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			d.fail(path, fmt.Sprintf("%q is not of the form address:port", s), hint)
			continue
		}
		addr, err := netip.ParseAddr(host)
		if err != nil {
			d.fail(path, fmt.Sprintf("%q has the host %q, which is not an IP address", s, host), hint)
			continue
		}
		if _, err := parsePort(port, 1); err != nil {
			d.fail(path, fmt.Sprintf("%q %v", s, err), hint)
			continue
		}
		addrs[i] = net.JoinHostPort(addr.String(), port)
		if slices.Contains(addrs[:i], addrs[i]) {
			d.twice(path, s)
		}
	}
}
