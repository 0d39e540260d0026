package listfile

import (
	"net/netip"
	"strings"
)

var (
	errForwards = unsupported{
		what: "names that another server answers, which blocks nothing",
		hint: "lists that block write address=/example.com/ or local=/example.com/", spares: true,
	}
	errNoServer = unsupported{
		what: "names that this machine is asked for, which does not say whether they are blocked",
		hint: errForwards.hint,
	}
	errOwnAddress = unsupported{what: errRealHost.what, hint: errRealHost.hint, spares: true}
	errPlainName  = unsupported{what: "a line about names without a dot"}
)

// dnsmasqLine reads a line of dnsmasq.conf: address=, server= and local= with
// domains between slashes. It skips other settings.
func dnsmasqLine(o *output, line int, text string) {
	s, comment := trim(text), ""
	if at := commentStart(s); at >= 0 {
		s, comment = trim(s[:at]), strings.TrimLeft(s[at:], "#")
	}
	setting, value, ok := strings.Cut(s, "=")
	setting, value = strings.TrimPrefix(trim(setting), "--"), trim(value)
	if !ok && strings.ContainsAny(setting, ". \t/") {
		o.refuse(line, Problem{Text: s, What: "not a setting of dnsmasq", Hint: "a line reads address=/example.com/"})
		return
	}
	isAddress := setting == "address"
	if !isAddress && setting != "server" && setting != "local" || !strings.HasPrefix(value, "/") {
		o.remark(noteSetting, line, s)
		return
	}
	names := strings.Split(value[1:], "/")
	target := names[len(names)-1]
	names = names[:len(names)-1]
	if len(names) == 0 {
		o.refuse(line, Problem{Text: s, What: "a domain without a slash after it", Hint: "a line reads address=/example.com/"})
		return
	}
	for _, name := range names {
		e, err := o.dnsmasqName(name)
		if err == nil {
			e, err = o.dnsmasqTarget(e, target, isAddress)
		}
		if err == nil {
			e, err = commented(e, comment)
		}
		o.put(line, name, e, err)
	}
}

// dnsmasqName reads a domain, which includes its subdomains.
func (o *output) dnsmasqName(s string) (Entry, error) {
	switch {
	case s == "#", s == "*":
		return Entry{}, errEverything
	case s == "":
		return Entry{}, errPlainName
	case strings.Contains(strings.TrimPrefix(s, "*."), "*"):
		return Entry{}, errGlob
	}
	return o.starred(strings.TrimPrefix(s, "."), o.wide)
}

// dnsmasqTarget decides from the answer for a name whether it is blocked.
func (o *output) dnsmasqTarget(e Entry, target string, isAddress bool) (Entry, error) {
	switch {
	case target == "", isAddress && target == "#":
		return o.judged(e, false)
	case target == "#": // the standard servers, in spite of other lines
		return o.judged(e, true)
	case !isAddress && isSinkholeServer(target):
		return e, errNoServer
	case !isAddress:
		return e, errForwards
	}
	if addr, err := netip.ParseAddr(target); err != nil || !isSinkhole(addr) {
		return e, errOwnAddress
	}
	return o.judged(e, false)
}

// isSinkholeServer reports whether a server of dnsmasq is an address that blocks where it is an
// answer, at the usual port. Some lists block with it, others have a resolver there, so it is no
// exception.
func isSinkholeServer(target string) bool {
	addr, err := netip.ParseAddr(strings.TrimSuffix(target, "#53"))
	return err == nil && isSinkhole(addr)
}
