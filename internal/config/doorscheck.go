package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/text"
	"spamgate/internal/unixsocket"
)

// checkDoors checks the tables of the doors, after the listeners, which have names
// and addresses of the same kind.
func (d *document) checkDoors() {
	for i := range d.cfg.Doors {
		door := &d.cfg.Doors[i]
		d.door(door)
		doorKinds[door.Table].check(d, door)
	}
	d.unaskedLists()
	if len(d.cfg.Listeners) == 0 {
		d.withoutListener()
	}
}

// withoutListener warns about keys that only listeners use.
func (d *document) withoutListener() {
	const remedy = "remove it, or write an address in addr of [listen]"
	if d.pos.has("next_hop") {
		d.warn("next_hop", "has no effect without a listener: no mail passes through the gate", remedy)
	}
	for _, key := range []string{"policy.recipient_domains", "policy.valid_recipients"} {
		if d.pos.has(key) {
			d.warn(key, "has no effect without a listener: the mail server that asks knows its recipients itself", remedy)
		}
	}
}

// door checks what the tables of all doors have, and sets a missing name.
func (d *document) door(door *Door) {
	d.doorAddr(door)
	if door.SocketMode != "" {
		d.doorMode(door)
	}
	d.listNames(door.Lists, door.Key("lists"), allLists)
	if door.Name == "" {
		door.Name = door.Addr
	} else {
		d.takeName(door.Path(), door.Name, "[["+door.Table+"]]")
	}
}

// doorAddr checks the address of a door, and that nothing else has it.
func (d *document) doorAddr(door *Door) {
	path, example := door.Key("addr"), doorKinds[door.Table].example
	if d.failed[path] {
		return
	}
	if !d.pos.has(path) {
		d.fail(path, "is missing", "write addr = "+example)
		return
	}
	socket, unix := door.Unix()
	what, hint := "", "write "+example
	switch {
	case door.Addr == Systemd:
		what = `cannot be "systemd": a socket that systemd passes belongs to [listen] or a [[listener]], and a door opens its own`
	case unix && door.Table == TableDNSServer:
		what = fmt.Sprintf("%q is a unix socket, but DNS is asked over UDP and TCP", door.Addr)
	case unix:
		what = socketPath(socket)
	default:
		if err := checkListen(door.Addr); err != nil {
			what = fmt.Sprintf("%q %v", door.Addr, err)
			if own := door.foreignAddr(); own != "" {
				hint = fmt.Sprintf("write %q", own)
			}
		}
	}
	if what != "" {
		d.fail(path, what, hint)
		return
	}
	addr := door.Addr
	if unix {
		addr = schemeUnix + filepath.Clean(socket)
	}
	d.takeAddr(takenAddr{addr, path, door.Path(), "[[" + door.Table + "]]"})
	if isPublic(door.Addr) && door.Table != TableDNSServer {
		d.warn(path, fmt.Sprintf("%q is open beyond this machine: whoever reaches it learns what is in the lists", door.Addr),
			"write an address of this machine, or let a firewall admit only your mail servers")
	}
}

// socketPath returns what is wrong with the path of a door's socket, or "".
func socketPath(path string) string {
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return fmt.Sprintf("%q does not name a socket", schemeUnix+path)
	case strings.HasPrefix(path, "//"):
		return fmt.Sprintf("%q has more than one slash before its path", schemeUnix+path)
	}
	return unixsocket.TooLong(path)
}

// doorMode checks the mode of a door's socket. Those who may not write to it cannot
// connect.
func (d *document) doorMode(door *Door) {
	path, mode := door.Key("socket_mode"), door.Mode()
	const hint = `write "0666", "0660" for the gate's group, or "0600" for the gate's user alone`
	_, unix := door.Unix()
	switch {
	case !socketModes.MatchString(door.SocketMode):
		d.fail(path, fmt.Sprintf("%q is not a mode", door.SocketMode), hint)
	case mode&0o600 != 0o600:
		d.fail(path, fmt.Sprintf("%q keeps the gate's own user out", door.SocketMode), hint)
	case (mode&0o044)>>1&^mode != 0:
		d.fail(path, fmt.Sprintf("%q lets others read, but only who may write to a socket can connect to it", door.SocketMode), hint)
	case !unix && d.pos.has(path) && !d.failed[door.Key("addr")]:
		d.fail(path, fmt.Sprintf("has no effect with addr = %q, which is not a unix socket", door.Addr), `write addr = "unix:PATH", or remove the line`)
	}
}

// dnsServer checks what only a DNS server has.
func (d *document) dnsServer(door *Door) {
	d.zones(door)
	d.dnsClients(door)
	d.askedLists(door)
	if door.TTL%time.Second != 0 {
		d.fail(door.Key("ttl"), fmt.Sprintf("%q has a fraction of a second, which DNS cannot say", text.Duration(door.TTL)), `write whole seconds, such as "60s"`)
	}
	for i, l := range d.cfg.Lists {
		if len(l.ProvenBy) > 0 && includes(door.Lists, l.Name) {
			d.warn(element("list", i)+".proven_by", fmt.Sprintf("the DNS server %s cannot prove a sender: what this list allows is not listed there", door.Name),
				"if it is to be listed there, write lists without this one in the [[dns_server]]")
		}
	}
}

// zones checks the names of the zones of a DNS server.
func (d *document) zones(s *Door) {
	const hint = `write a domain name for it alone, such as "bl.example.org"`
	for key, zone := range map[string]*string{"zone": &s.Zone, "hashed_zone": &s.HashedZone} {
		if *zone == "" {
			continue
		}
		name, err := domainName(*zone)
		if _, ip := netip.ParseAddr(*zone); err == nil && ip == nil {
			err = errNoDomain
		}
		switch {
		case err != nil:
			d.fail(s.Key(key), fmt.Sprintf("%q %v", *zone, err), hint)
		case len(name) > maxZone:
			d.fail(s.Key(key), fmt.Sprintf("has %d bytes, which leaves too little of a name's 253 for what is asked", len(name)),
				fmt.Sprintf("write a name of at most %d", maxZone))
		}
		*zone = name
	}
	zone, hashed := s.Key("zone"), s.Key("hashed_zone")
	switch {
	case d.failed[zone] || d.failed[hashed]:
	case s.Zone == "" && s.HashedZone == "":
		d.fail(zone, "is missing", `write zone = "bl.example.org" for the domains of the lists, or hashed_zone = "hash.example.org" for the hashes of their addresses`)
	case s.Zone == "" || s.HashedZone == "":
	case s.Zone == s.HashedZone:
		d.fail(hashed, fmt.Sprintf("%q is also zone, and a name must be asked in one of them", s.HashedZone), "give each a name of its own")
	case strings.HasSuffix(s.HashedZone, "."+s.Zone), strings.HasSuffix(s.Zone, "."+s.HashedZone):
		d.fail(hashed, fmt.Sprintf("%q and zone %q are one below the other, so that a name can be in both", s.HashedZone, s.Zone),
			"give each a name of its own, side by side")
	}
}

// maxZone leaves room for the domains that are asked: a name has at most 253 bytes.
const maxZone = 120

// dnsClients checks who is answered by a DNS server.
func (d *document) dnsClients(s *Door) {
	path := s.Key("allow_clients")
	if d.failedBelow(path) || d.failed[s.Key("addr")] {
		return
	}
	world := slices.IndexFunc(s.AllowClients, func(p netip.Prefix) bool { return p.Bits() == 0 })
	local := !slices.ContainsFunc(s.AllowClients, func(p netip.Prefix) bool { return !p.Addr().IsLoopback() })
	switch {
	case len(s.AllowClients) == 0:
		d.fail(path, "is empty, so that nobody is answered", `write the networks of your mail servers, such as ["127.0.0.0/8", "192.0.2.0/24"]`)
	case world >= 0:
		d.warn(element(path, world), fmt.Sprintf("%q lets everyone ask what is in the lists, and have answers sent to forged addresses", s.AllowClients[world]),
			"write the networks of your mail servers")
	case local && isPublic(s.Addr):
		d.warn(s.Key("addr"), fmt.Sprintf("%q is open beyond this machine, but allow_clients admits only this machine", s.Addr),
			`write allow_clients with the networks of your mail servers, or addr = "127.0.0.1:PORT"`)
	}
}

// policyService warns about lists that a policy service cannot apply as written: it
// sees no header, and Postfix cannot discard a message for one recipient alone.
func (d *document) policyService(door *Door) {
	asked := 0
	for i, l := range d.cfg.Lists {
		pos := slices.Index(door.Lists, l.Name)
		envelope := slices.Contains(l.Stage, stageEnvelope)
		switch {
		case pos < 0 && len(door.Lists) > 0:
			continue
		case !envelope && pos >= 0:
			d.warn(element(door.Key("lists"), pos), fmt.Sprintf("the list %q has no effect here: its stage is \"header\", and a policy service sees no header", l.Name),
				`remove it, or add "envelope" to the list's stage; a [[milter]] sees headers`)
		case envelope && l.Type == typeBlock && verdict.ActionOf(l.Action).Drops():
			d.warn(element("list", i)+".action", fmt.Sprintf("%q is \"tag\" at the policy service %s, since Postfix would discard the mail for all its recipients", l.Action, door.Name),
				"a [[listener]] or a [[milter]] can discard")
		}
		if envelope && slices.Contains(l.ProvenBy, proofDKIM) {
			d.warn(element("list", i)+".proven_by", fmt.Sprintf("the policy service %s cannot verify DKIM: it sees no message, and lets these senders in unproven", door.Name),
				`write ["spf"], or ask by a [[milter]]`)
		}
		if envelope {
			asked++
		}
	}
	if asked == 0 && len(d.cfg.Lists) > 0 {
		d.warn(door.Path(), "asks no list: a policy service sees no header, and no list that applies has \"envelope\" in its stage",
			`add "envelope" to the stage of a list, or write a [[milter]], which sees headers`)
	}
}

// unaskedLists warns about lists that no listener asks, and no door either, though a door
// has them.
func (d *document) unaskedLists() {
	for i, l := range d.cfg.Lists {
		asked := slices.ContainsFunc(d.cfg.Listeners, func(o Listener) bool { return includes(o.Lists, l.Name) })
		var whys, hints []string
		for _, door := range d.cfg.Doors {
			if !includes(door.Lists, l.Name) {
				continue
			}
			why, hint := door.passesOver(&l)
			asked = asked || why == ""
			if !slices.Contains(whys, why) {
				whys, hints = append(whys, why), append(hints, hint)
			}
		}
		if asked || len(whys) == 0 {
			continue
		}
		key := ".stage"
		if l.InDNS() && slices.Contains(l.Stage, stageEnvelope) {
			key = ".dns_zone"
		} else if l.PerRecipient && slices.Contains(l.Stage, stageEnvelope) {
			key = ".per_recipient"
		}
		d.warn(element("list", i)+key, fmt.Sprintf("no door asks the list %q: %s", l.Name, strings.Join(whys, ", and ")), hints[0])
	}
}

// includes reports whether the lists that apply include that name. No names are all lists.
func includes(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// passesOver returns why the door does not ask a list that it has, and what to do, or "".
func (d Door) passesOver(l *List) (why, hint string) {
	envelope := slices.Contains(l.Stage, stageEnvelope)
	switch {
	case d.Table == TablePolicyService && !envelope:
		return "a policy service sees no header", `add "envelope", or a [[milter]]`
	case d.Table == TableDNSServer && l.InDNS():
		return "a [[dns_server]] does not publish lists in DNS again", "add a [[policy_service]], a [[milter]] or a [[listener]], or remove the list"
	case d.Table == TableDNSServer && l.PerRecipient:
		return "a question over DNS names no recipient", "add a [[policy_service]], a [[milter]] or a [[listener]], or remove the list"
	case d.Table == TableDNSServer && !envelope && len(d.Lists) == 0:
		return "a [[dns_server]] asks a list for headers only if its lists name it", `add "envelope", or write lists in the [[dns_server]], with this one among them`
	}
	return "", ""
}

// doorHint returns a hint about an unknown key in the table of a door, and the path of the
// key that it stands for. Both are empty if only [suggest] can help.
func doorHint(key, table string, value any) (hint, meant string) {
	kind := display(table)
	switch {
	case !isDoor(kind):
	case key == "listen", key == "socket":
		addr, _ := value.(string)
		if own := (Door{Table: kind, Addr: addr}).foreignAddr(); own != "" {
			return fmt.Sprintf("write addr = %q", own), child(table, "addr")
		}
		return `did you mean "addr"?`, child(table, "addr")
	case kind == TableMilter && key == "timeout":
		return "write it in main.cf as command_timeout, in the braces of smtpd_milters", ""
	case slices.Contains(doorKinds[kind].client, key):
		return "write it in main.cf, in the braces of " + doorKinds[kind].parameter, ""
	}
	return "", ""
}

// foreignAddr returns the address of a door that is written as Postfix, Sendmail or other
// milters write it, as it is written here; "" if it is none.
func (d Door) foreignAddr() string {
	family, rest, _ := strings.Cut(d.Addr, ":")
	if strings.HasPrefix(d.Addr, "/") {
		family, rest = "local", d.Addr
	}
	switch family {
	case "local", "unix":
		if d.Table != TableDNSServer && socketPath(rest) == "" {
			return schemeUnix + rest
		}
	case "inet", "inet6":
		if port, host, ok := strings.Cut(rest, "@"); ok {
			rest = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		if rest != Systemd && checkListen(rest) == nil {
			return rest
		}
	}
	return ""
}

// wantString says what to write for a string.
func wantString(path string, value any) string {
	table, key, _ := strings.Cut(path, ".")
	kind := display(table)
	if _, array := value.([]any); array && key == "addr" && isDoor(kind) {
		return "a string in quotes; for a second address write a second [[" + kind + "]]"
	}
	return "a string in quotes"
}
