package config

import (
	"fmt"
	"path/filepath"
	"slices"
)

// tlsNone is the value of tls without TLS.
const tlsNone = "none"

// listen checks [listen] and the [[listener]] tables: each table's values, then
// the listeners that they define.
func (d *document) listen() {
	d.endpoint("listen", &d.cfg.Listen.Endpoint)
	for i := range d.cfg.Listeners {
		d.endpoint(element("listener", i), &d.cfg.Listeners[i].Endpoint)
	}
	all := d.listeningTables()
	d.listenerAddresses(all)
	d.listenerNames(all)
	for _, l := range all {
		d.listenerTLS(l)
		d.listenerAuth(l)
		d.listenerMaildir(l)
	}
	d.unusedKeys(all)
	d.cfg.Listeners = nil
	for _, l := range all {
		d.cfg.Listeners = append(d.cfg.Listeners, l.Listener)
	}
}

// listenerTable is a listener and the path of its table.
type listenerTable struct {
	path string
	Listener
}

// listeningTables returns the tables that define listeners.
func (d *document) listeningTables() []*listenerTable {
	var all []*listenerTable
	closed := len(d.cfg.Listen.Addr) == 0 && !d.failedBelow("listen.addr")
	if !closed && (len(d.cfg.Listeners) == 0 || d.pos.has("listen.addr")) {
		all = append(all, &listenerTable{"listen", Listener{Name: "listen", Endpoint: d.cfg.Listen.Endpoint}})
	} else {
		d.cfg.Listen.Addr = nil
	}
	for i, l := range d.cfg.Listeners {
		all = append(all, &listenerTable{element("listener", i), l})
	}
	return all
}

// keyPath returns the path of the key that sets a value: in the table itself or,
// if a [[listener]] does not set it, in [listen].
func (d *document) keyPath(table, key string) string {
	if path := table + "." + key; d.pos.has(path) {
		return path
	}
	return "listen." + key
}

// origin returns where a value comes from if its key is not in the table itself.
func (d *document) origin(table, key string) string {
	if table == "listen" || d.pos.has(table+"."+key) {
		return ""
	}
	return " (from [listen])"
}

// endpoint checks what the tags of a table's fields cannot say. A value that a
// [[listener]] inherits from [listen] is at fault there.
func (d *document) endpoint(table string, e *Endpoint) {
	if e.MaxMessageBytes < 1 {
		d.fail(d.keyPath(table, "max_message_bytes"), fmt.Sprintf("%d is out of range", e.MaxMessageBytes), "write at least 1; 52428800 is 50 MiB")
	}
	d.files(d.keyPath(table, "tls_cert"), &e.TLSCert)
	d.files(d.keyPath(table, "tls_key"), &e.TLSKey)
	for i, file := range e.TLSCert {
		if slices.ContainsFunc(e.TLSCert[:i], func(f string) bool { return filepath.Clean(f) == filepath.Clean(file) }) {
			d.twice(element(d.keyPath(table, "tls_cert"), i), file)
		}
	}
	d.listNames(e.Lists, d.keyPath(table, "lists"), allLists)
}

const allLists = "or [] for all lists"

// listNames checks the names of lists at the path of a key. All says how to name all.
func (d *document) listNames(names []string, path, all string) {
	var known []string
	for _, l := range d.cfg.Lists {
		known = append(known, l.Name)
	}
	for i, name := range names {
		switch {
		case !slices.Contains(known, name) && len(known) > 0:
			hint := "write " + choice(known)
			if near, ok := Nearest(name, known); ok && len(known) > 3 {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.fail(element(path, i), fmt.Sprintf("there is no list %q", name), hint+", "+all)
		case slices.Contains(names[:i], name):
			d.twice(element(path, i), name)
		}
	}
}

// files checks the paths of files. A single "" is none.
func (d *document) files(path string, files *Files) {
	if slices.Equal(*files, Files{""}) {
		*files = nil
	}
	for i, file := range *files {
		if file == "" {
			d.fail(element(path, i), "is empty", "write the path of a PEM file, or remove the element")
		}
	}
}

// listenerAddresses checks the addresses of each listener, and that no two overlap.
func (d *document) listenerAddresses(all []*listenerTable) {
	// What a table of a wrong name was to open is not known.
	misnamed := d.unknownTable
	for table := range doorKinds {
		misnamed = misnamed || d.failedBelow(table)
	}
	if len(all) == 0 && len(d.cfg.Doors) == 0 && !misnamed {
		d.fail("listen.addr", "is empty, and nothing else is opened",
			`write at least one address, such as "127.0.0.1:2525", or add a [[policy_service]], [[milter]] or [[dns_server]]`)
	}
	for _, l := range all {
		key := l.path + ".addr"
		if len(l.Addr) == 0 && l.path != "listen" && !d.pos.has(key) {
			d.fail(key, "is missing", `write addr = ":465", or another address`)
		} else if len(l.Addr) == 0 {
			d.fail(key, "is empty", `write at least one address, such as "127.0.0.1:2525"`)
		}
		for i, addr := range l.Addr {
			path := d.elementOrKey(key, i)
			if err := checkListen(addr); err != nil {
				d.fail(path, fmt.Sprintf("%q %v", addr, err),
					`write "host:port", ":port" for every address of the machine, or "systemd" for the sockets that systemd passes`)
				continue
			}
			d.takeAddr(takenAddr{addr, path, l.path, "listener"})
		}
	}
}

// takenAddr is an address to open, the path of its value, and the path and kind of the
// table that has it.
type takenAddr struct{ addr, path, by, kind string }

// takeAddr notes an address, or a fault if it cannot be opened since another one is the
// same or includes it.
func (d *document) takeAddr(a takenAddr) {
	i := slices.IndexFunc(d.taken, func(t takenAddr) bool { return Overlap(t.addr, a.addr) })
	d.taken = append(d.taken, a)
	if i < 0 {
		return
	}
	other, addr := d.taken[i], a.addr
	where := d.where(other.path)
	what, hint := fmt.Sprintf("%q is also an address of the %s %s", addr, other.kind, where), "give each its own address"
	if a.kind == other.kind && a.kind == "listener" {
		hint = "give each listener its own address"
	}
	switch {
	case other.addr != addr && sameHost(other.addr, addr):
		what, hint = fmt.Sprintf("%q is the same address as %q %s", addr, other.addr, where), "remove one of the two, or write another port"
	case other.addr != addr:
		what = fmt.Sprintf("%q and %q %s cannot both be opened, since one includes the other", addr, other.addr, where)
		hint = "remove one of the two, or write another port"
	case other.by == a.by:
		what, hint = fmt.Sprintf("%q appears twice", addr), "remove one"
	}
	d.fail(a.path, what, hint)
}

// takeWebAddr notes an address that is not for mail, which the metrics may not have either.
func (d *document) takeWebAddr(a takenAddr) {
	d.takeAddr(a)
	if metrics := d.cfg.Admin.MetricsAddr; metrics != "" && Overlap(a.addr, metrics) {
		d.fail(a.path, fmt.Sprintf("%q is also metrics_addr of [admin]", a.addr), "give each its own port")
	}
}

// where says where a value is written.
func (d *document) where(path string) string {
	line, _ := d.pos.find(path)
	if line == 0 {
		return "(the default of [listen] addr)"
	}
	return fmt.Sprintf("at line %d", line)
}

// listenerNames checks the names, and sets those that are missing.
func (d *document) listenerNames(all []*listenerTable) {
	for _, l := range all {
		if l.Name != "" {
			d.takeName(l.path, l.Name, "listener")
		} else if len(l.Addr) > 0 {
			l.Name = l.Addr[0]
		}
	}
}

// takenName is the path and kind of the table that has a name.
type takenName struct{ by, kind string }

// takeName checks the name of a listener or door, and that no other has it.
func (d *document) takeName(table, name, kind string) {
	path := table + ".name"
	other, taken := d.names[name]
	switch {
	case !listName.MatchString(name):
		d.fail(path, fmt.Sprintf("%q is not a valid name", name), `use letters, digits, ".", "_" and "-"`)
	case taken:
		line, _ := d.pos.find(other.by)
		hint := "give each its own name"
		if kind == other.kind && kind == "listener" {
			hint = "give each listener its own name"
		}
		d.fail(path, fmt.Sprintf("%q is also the name of the %s at line %d", name, other.kind, line), hint)
	default:
		d.names[name] = takenName{table, kind}
	}
}

// listenerTLS checks that TLS comes with a certificate.
func (d *document) listenerTLS(l *listenerTable) {
	failed := func(key string) bool { return d.failedBelow(d.keyPath(l.path, key)) }
	if l.TLS == tlsNone || failed("tls") || failed("tls_cert") || failed("tls_key") {
		return
	}
	switch {
	case len(l.TLSCert) == 0 && len(l.TLSKey) == 0:
		d.fail(l.path+".tls", fmt.Sprintf("%q%s needs a certificate", l.TLS, d.origin(l.path, "tls")),
			`write tls_cert = "FILE" and tls_key = "FILE", or tls = "none"`)
	case len(l.TLSCert) == 0:
		d.fail(l.path+".tls_cert", "is missing; tls_key has no effect without it", `write tls_cert = "FILE", or tls = "none"`)
	case len(l.TLSKey) == 0:
		d.fail(l.path+".tls_key", "is missing; tls_cert has no effect without it", `write tls_key = "FILE", or tls = "none"`)
	default:
		d.aKeyEach(d.keyPath(l.path, "tls_key"), l.TLSCert, l.TLSKey)
	}
}

// listenerAuth checks that the next hop knows the passwords of clients, and that
// they never travel in clear text.
func (d *document) listenerAuth(l *listenerTable) {
	if !l.Logins() || d.failedBelow(d.keyPath(l.path, "auth")) {
		return
	}
	path, value := l.path+".auth", fmt.Sprintf("%q%s", l.Auth, d.origin(l.path, "auth"))
	if l.TLS == tlsNone {
		d.fail(path, value+" needs TLS, so that nobody can read the passwords", `write tls = "required", "implicit" or "starttls", or auth = "none"`)
		return
	}
	n, own, sound := d.hopOf(l)
	if !sound {
		return
	}
	addrs, tls := "addr of [next_hop]", `write tls = "required" in [next_hop], or "smtps://HOST:PORT" in its addr`
	if own {
		addrs, tls = "next_hop", `write "smtps://HOST:PORT" in next_hop, or next_hop = { addr = "smtp://HOST:PORT", tls = "required" }`
	}
	if hops := n.Addr; len(hops) > 0 && protocol(hops[0]) != "SMTP" {
		d.fail(path, fmt.Sprintf("%s needs an SMTP server, which knows the passwords, but the next hop is %q", value, hops[0]),
			`write "smtp://HOST:PORT" or "smtps://HOST:PORT" in `+addrs+`, or auth = "none"`)
		return
	}
	if hop, ok := n.unprotected(); ok && !d.failed["next_hop.tls"] && !d.failed[l.path+".next_hop.tls"] {
		d.fail(path, fmt.Sprintf("%s would send passwords to %q, where others can read them", value, hop),
			tls+`, or auth = "none"`)
	}
}

// hopOf returns the next hop of a listener, and reports whether that is the listener's own
// and whether its addresses are sound.
func (d *document) hopOf(l *listenerTable) (n NextHop, own, sound bool) {
	path := "next_hop"
	if own = d.pos.has(l.path + ".next_hop"); own {
		path = l.path + ".next_hop"
	}
	return d.cfg.HopOf(l.Listener), own, !d.failedBelow(d.pos.hopAddr(path)) && !d.failedBelow(path)
}

// listenerMaildir keeps other machines away from a Maildir.
func (d *document) listenerMaildir(l *listenerTable) {
	n, own, sound := d.hopOf(l)
	if _, ok := n.Maildir(); !ok || n.AllowPublic || !sound {
		return
	}
	hint := `listen on 127.0.0.1, or write allow_public = true in [next_hop]`
	if own {
		hint = `listen on 127.0.0.1, or write next_hop = { addr = "maildir:DIRECTORY", allow_public = true }`
	}
	for i, addr := range l.Addr {
		if path := d.elementOrKey(l.path+".addr", i); isPublic(addr) && !d.failed[path] {
			d.fail(path, fmt.Sprintf("%q is open beyond this machine, but the next hop is a Maildir, which accepts mail for everyone", addr),
				hint)
		}
	}
}

// unusedKeys notes keys that have no effect without another key. A key of [listen]
// may serve several listeners: one of them that uses it is enough.
func (d *document) unusedKeys(all []*listenerTable) {
	set, used := map[string]string{}, map[string]bool{} // by path; set holds the keys
	for _, l := range all {
		tls, logins := l.TLS != tlsNone, l.Logins() || len(l.TrustedProxies) > 0
		for key, is := range map[string]struct{ set, used bool }{
			"tls_cert":                    {len(l.TLSCert) > 0, tls},
			"tls_key":                     {len(l.TLSKey) > 0 && len(l.TLSCert) == 0, tls},
			"exempt_authenticated":        {l.ExemptAuthenticated, logins},
			"login_messages_per_minute":   {l.Login.MessagesPerMinute > 0, logins},
			"login_recipients_per_minute": {l.Login.RecipientsPerMinute > 0, logins},
		} {
			path := d.keyPath(l.path, key)
			if is.set {
				set[path] = key
			}
			used[path] = used[path] || is.used
		}
	}
	for path, key := range set {
		what, hint := `has no effect with tls = "none"`, `write tls = "starttls", "required" or "implicit", or remove the line`
		switch key {
		case "tls_key":
			hint = `write tls = "starttls", "required" or "implicit", and tls_cert = "FILE", or remove the line`
		case "exempt_authenticated":
			what, hint = `true has no effect if nobody can log in`, `write auth = "require" or "pass", or remove the line`
		case "login_messages_per_minute", "login_recipients_per_minute":
			what, hint = `has no effect if nobody can log in`, `write auth = "require" or "pass", or remove the line`
		}
		if !used[path] {
			d.fail(path, what, hint)
		}
	}
}
