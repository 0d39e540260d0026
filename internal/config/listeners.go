package config

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Values that several checks of listeners speak of.
const (
	tlsNone  = "none"
	authPass = "pass"
)

// maxLimit is the largest value of each of the Limits.
const maxLimit = 1_000_000

// listen checks [listen] and the [[listener]] tables: each table's values, then
// the listeners that they make.
func (d *document) listen() {
	d.between("listen.shutdown_timeout", d.cfg.Listen.ShutdownTimeout, 0, time.Hour)
	d.endpoint("listen", &d.cfg.Listen.Endpoint)
	for i := range d.cfg.Listeners {
		d.endpoint(element("listener", i), &d.cfg.Listeners[i].Endpoint)
	}
	all := d.opened()
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

// opened is a listener and the path of its table.
type opened struct {
	path string
	Listener
}

// opened returns the listeners that there are.
func (d *document) opened() []*opened {
	var all []*opened
	if len(d.cfg.Listeners) == 0 || d.at.has("listen.addr") {
		all = append(all, &opened{"listen", Listener{Name: "listen", Endpoint: d.cfg.Listen.Endpoint}})
	} else {
		d.cfg.Listen.Addr = nil
	}
	for i, l := range d.cfg.Listeners {
		all = append(all, &opened{element("listener", i), l})
	}
	return all
}

// home is the path at which the value of a key stands: in the table itself or,
// where a [[listener]] does not set it, in [listen].
func (d *document) home(table, key string) string {
	if path := table + "." + key; d.at.has(path) {
		return path
	}
	return "listen." + key
}

// origin says where the value of a key stands, if it is not in the table itself.
func (d *document) origin(table, key string) string {
	if table == "listen" || d.at.has(table+"."+key) {
		return ""
	}
	return " (from [listen])"
}

// endpoint checks each value of a table by itself. One that a [[listener]] has
// from [listen] is at fault there.
func (d *document) endpoint(table string, e *Endpoint) {
	at := func(key string) string { return d.home(table, key) }
	if e.MaxMessageBytes < 1 {
		d.fail(at("max_message_bytes"), fmt.Sprintf("%d is out of range", e.MaxMessageBytes), "write at least 1; 52428800 is 50 MiB")
	}
	d.within(at("max_recipients"), e.MaxRecipients, 1, 100_000)
	d.oneOf(at("tls"), e.TLS, tlsNone, "starttls", "required", "implicit")
	d.oneOf(at("auth"), e.Auth, "none", authPass)
	d.listenerLists(at("lists"), e.Lists)
	d.between(at("greeting_delay"), e.GreetingDelay, 0, time.Minute)
	d.oneOf(at("pregreet"), e.Pregreet, "reject", "log")
	d.between(at("tarpit"), e.Tarpit, 0, 5*time.Minute)
	d.within(at("tarpit_max"), e.TarpitMax, 1, 10_000)
	d.oneOf(at("bare_newline"), e.BareNewline, "reject", "normalize")
	d.within(at("min_data_rate"), e.MinDataRate, 0, 1_000_000)
	d.within(at("max_hops"), e.MaxHops, 1, 1000)
	d.within(at("max_errors"), e.MaxErrors, 1, 100_000)
	d.within(at("max_refusals"), e.MaxRefusals, 1, 100_000)
	d.between(at("command_timeout"), e.CommandTimeout, time.Second, time.Hour)
	d.between(at("data_timeout"), e.DataTimeout, time.Second, time.Hour)
	for field, value := range reflect.ValueOf(e.Limits).Fields() {
		if n := value.Int(); n != int64(AutoConnections) || field.Type != reflect.TypeFor[Connections]() {
			d.within(at(field.Tag.Get("toml")), n, 0, maxLimit)
		}
	}
}

// listenerLists checks that the lists a listener goes by exist.
func (d *document) listenerLists(path string, names []string) {
	var known []string
	for _, l := range d.cfg.Lists {
		known = append(known, l.Name)
	}
	for i, name := range names {
		switch {
		case !slices.Contains(known, name) && len(known) > 0:
			d.fail(element(path, i), fmt.Sprintf("there is no list %q", name), "write "+choice(known)+", or [] for all lists")
		case slices.Contains(names[:i], name):
			d.fail(element(path, i), fmt.Sprintf("%q is there twice", name), "remove one")
		}
	}
}

// listenerAddresses checks where each listener listens. Several may take any
// free port.
func (d *document) listenerAddresses(all []*opened) {
	var taken []takenAddr
	for _, l := range all {
		key := l.path + ".addr"
		if len(l.Addr) == 0 && l.path != "listen" && !d.at.has(key) {
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
			if i := slices.IndexFunc(taken, func(t takenAddr) bool { return overlap(t.addr, addr) }); i >= 0 {
				d.addressTaken(path, addr, l, taken[i])
			}
			taken = append(taken, takenAddr{addr, path, l})
		}
	}
}

// takenAddr is an address to listen on, and the path where it stands.
type takenAddr struct {
	addr, path string
	of         *opened
}

// addressTaken notes that an address cannot be opened, since another one is.
func (d *document) addressTaken(path, addr string, l *opened, by takenAddr) {
	line, _ := d.at.find(by.path)
	switch {
	case by.addr != addr && sameHost(by.addr, addr):
		d.fail(path, fmt.Sprintf("%q is the same address as %q at line %d", addr, by.addr, line), "remove one of the two, or write another port")
	case by.addr != addr:
		d.fail(path, fmt.Sprintf("%q and %q at line %d cannot both be opened, as one includes the other", addr, by.addr, line),
			"remove one of the two, or write another port")
	case by.of == l:
		d.fail(path, fmt.Sprintf("%q is there twice", addr), "remove one")
	default:
		d.fail(path, fmt.Sprintf("%q is also an address of the listener at line %d", addr, line), "give each listener its own")
	}
}

// listenerNames checks the names, and gives those that are missing.
func (d *document) listenerNames(all []*opened) {
	first := map[string]*opened{}
	for _, l := range all {
		path := l.path + ".name"
		switch other := first[l.Name]; {
		case l.Name == "":
			if len(l.Addr) > 0 {
				l.Name = l.Addr[0]
			}
		case !listName.MatchString(l.Name):
			d.fail(path, fmt.Sprintf("%q is no name", l.Name), `use letters, digits, ".", "_" and "-"`)
		case other != nil:
			line, _ := d.at.find(other.path)
			d.fail(path, fmt.Sprintf("%q is also the name of the listener at line %d", l.Name, line), "give each listener its own")
		default:
			first[l.Name] = l
		}
	}
}

// listenerTLS checks that TLS comes with a certificate.
func (d *document) listenerTLS(l *opened) {
	wrong := func(key string) bool { return d.failed[d.home(l.path, key)] }
	if l.TLS == tlsNone || wrong("tls") || wrong("tls_cert") || wrong("tls_key") {
		return
	}
	switch {
	case l.TLSCert == "" && l.TLSKey == "":
		d.fail(l.path+".tls", fmt.Sprintf("%q%s needs a certificate", l.TLS, d.origin(l.path, "tls")),
			`write tls_cert = "FILE" and tls_key = "FILE", or tls = "none"`)
	case l.TLSCert == "":
		d.fail(l.path+".tls_cert", "is missing, and the key is of no use without it", `write tls_cert = "FILE", or tls = "none"`)
	case l.TLSKey == "":
		d.fail(l.path+".tls_key", "is missing, and the certificate is of no use without it", `write tls_key = "FILE", or tls = "none"`)
	}
}

// listenerAuth checks that there is somebody to log in with, and that no
// password goes over the network in clear text, on either side.
func (d *document) listenerAuth(l *opened) {
	if l.Auth != authPass {
		return
	}
	path, value := l.path+".auth", `"pass"`+d.origin(l.path, "auth")
	if l.TLS == tlsNone {
		d.fail(path, value+" needs TLS, so that nobody reads the passwords", `write tls = "required", "implicit" or "starttls", or auth = "none"`)
		return
	}
	if hops := d.cfg.NextHop.Addr; len(hops) > 0 && !d.failedBelow("next_hop.addr") && protocol(hops[0]) != "SMTP" {
		d.fail(path, fmt.Sprintf("%s needs an SMTP server, which knows the passwords, and the next hop is %q", value, hops[0]),
			`write "smtp://HOST:PORT" or "smtps://HOST:PORT" in addr of [next_hop], or auth = "none"`)
		return
	}
	if hop, ok := d.cfg.NextHop.overhears(); ok && !d.failedBelow("next_hop.addr") && !d.failed["next_hop.tls"] {
		d.fail(path, fmt.Sprintf("%s would hand passwords on to %q where others can read them", value, hop),
			`write tls = "required" in [next_hop], or "smtps://HOST:PORT" in its addr, or auth = "none"`)
	}
}

// listenerMaildir keeps other machines away from a Maildir.
func (d *document) listenerMaildir(l *opened) {
	if _, ok := d.cfg.NextHop.Maildir(); !ok || d.cfg.NextHop.AllowPublic || d.failedBelow("next_hop.addr") {
		return
	}
	for i, addr := range l.Addr {
		if path := d.elementOrKey(l.path+".addr", i); isPublic(addr) && !d.failed[path] {
			d.fail(path, fmt.Sprintf("%q is open beyond this machine, and the next hop is a Maildir, which takes mail for everyone", addr),
				`listen on 127.0.0.1, or write allow_public = true in [next_hop]`)
		}
	}
}

// unusedKeys notes keys that have no effect, since something was forgotten
// beside them. What [listen] sets for several listeners is fine as soon as one
// of them uses it.
func (d *document) unusedKeys(all []*opened) {
	tls := func(e *Endpoint) bool { return e.TLS != tlsNone }
	for _, k := range []struct {
		key        string
		set, used  func(*Endpoint) bool
		what, hint string
	}{
		{
			"tls_cert", func(e *Endpoint) bool { return e.TLSCert != "" }, tls,
			`is of no use with tls = "none"`, `write tls = "starttls", "required" or "implicit", or remove the line`,
		},
		{
			"tls_key", func(e *Endpoint) bool { return e.TLSKey != "" && e.TLSCert == "" }, tls,
			`is of no use with tls = "none"`, `write tls = "starttls", "required" or "implicit", and tls_cert = "FILE", or remove the line`,
		},
		{
			"exempt_authenticated", func(e *Endpoint) bool { return e.ExemptAuthenticated },
			func(e *Endpoint) bool { return e.Auth == authPass || len(e.TrustedProxies) > 0 },
			`true is of no use where nobody can log in`, `write auth = "pass", or remove the line`,
		},
	} {
		used := map[string]bool{}
		for _, l := range all {
			if k.used(&l.Endpoint) {
				used[d.home(l.path, k.key)] = true
			}
		}
		for _, l := range all {
			if home := d.home(l.path, k.key); k.set(&l.Endpoint) && !used[home] {
				d.fail(home, k.what, k.hint)
			}
		}
	}
}
