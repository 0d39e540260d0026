package listfile

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// localNames are the names that hosts files begin with. They are skipped.
var localNames = map[string]bool{
	"localhost": true, "localhost.localdomain": true, "local": true, "broadcasthost": true,
	"localhost4": true, "localhost6": true, "localhost4.localdomain4": true, "localhost6.localdomain6": true,
	"ip6-localhost": true, "ip6-loopback": true, "ip6-localnet": true, "ip6-mcastprefix": true,
	"ip6-allnodes": true, "ip6-allrouters": true, "ip6-allhosts": true, "0.0.0.0": true,
}

var (
	errNoName    = errors.New("an address without a name")
	errNoAddress = errors.New("a name without an address before it")
	errRealHost  = unsupported{what: "a real address of a host, which blocks nothing", hint: "lists that block write 0.0.0.0, 127.0.0.1, :: or ::1"}
)

// hostsLine reads a line of a hosts file, hosts(5): an address, then names.
func hostsLine(o *output, line int, text string) {
	content, comment, _ := strings.Cut(text, "#")
	fields := strings.Fields(content)
	if len(fields) == 0 {
		return // other white space
	}
	addr, err := hostAddress(fields[0])
	if err != nil {
		p := foreignProblem(content, errNoAddress)
		if !p.Unsupported && p.Hint == "" {
			p.Hint = "a line reads 0.0.0.0 example.com"
		}
		o.refuse(line, p)
		return
	}
	if len(fields) == 1 {
		o.refuse(line, Problem{Text: content, What: errNoName.Error(), Hint: "a line reads 0.0.0.0 example.com"})
		return
	}
	if addr.IsLoopback() && slices.ContainsFunc(fields[1:], isLocalhost) {
		o.remark(noteLocalhost, line, text) // its other names are the host's own
		return
	}
	for _, name := range fields[1:] {
		if localNames[strings.ToLower(name)] {
			o.remark(noteLocalhost, line, text)
			continue
		}
		e, err := Entry{}, error(errRealHost)
		if isSinkhole(addr) {
			e, err = o.exactly(name)
		}
		if err == nil {
			e, err = commented(e, comment)
		}
		o.put(line, name, e, err)
	}
}

// hostAddress parses an address of a hosts file. Besides the usual forms it accepts
// those of inet_aton(3), with fewer numbers or hexadecimal ones: 0 is 0.0.0.0, 127.1
// is 127.0.0.1.
func hostAddress(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err == nil {
		return addr, nil
	}
	numbers := strings.Split(s, ".")
	if len(numbers) > 4 {
		return addr, err
	}
	var octets [4]byte
	for i, number := range numbers {
		bits := 8
		if i == len(numbers)-1 {
			bits = 8 * (4 - i) // the last number fills the rest
		}
		n, invalid := strconv.ParseUint(number, 0, bits)
		if invalid != nil || strings.ContainsAny(number, "_oObB") {
			return addr, err
		}
		for pos := i; bits > 0; pos++ {
			bits -= 8
			octets[pos] = byte(n >> bits)
		}
	}
	return netip.AddrFrom4(octets), nil
}

// isShortSinkhole reports whether s is a short form of an address that blocks, such
// as 0.
func isShortSinkhole(s string) bool {
	addr, err := hostAddress(s)
	return err == nil && isSinkhole(addr)
}

// isLocalhost reports whether a name means the host itself.
func isLocalhost(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "localhost") && localNames[name]
}

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
	if pos := commentStart(s); pos >= 0 {
		s, comment = trim(s[:pos]), strings.TrimLeft(s[pos:], "#")
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
