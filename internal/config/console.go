package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"spamgate/internal/text"
)

// Console says where browsers and programs reach the console.
type Console struct {
	// Addr is "host:port", "unix:" with the absolute path of a socket, or empty: there is
	// no console.
	Addr string `toml:"addr"`

	// URL is where browsers reach the console: "https://host" or "https://host:port", or with
	// http, in lower case. It is empty if Base makes it from the address, which is one of
	// loopback then.
	URL string `toml:"url"`

	TLSCert Files `toml:"tls_cert"` // as those of an Endpoint; none with a unix socket
	TLSKey  Files `toml:"tls_key"`

	// SSOHeader is the canonical name of the header field in which a proxy names the user;
	// empty: none. It is set only with a unix socket.
	SSOHeader string `toml:"sso_header"`

	// ShareAccounts makes the accounts those of all gates of a fleet.
	ShareAccounts bool `toml:"share_accounts"`

	SocketGroup string `toml:"socket_group"` // name or number; empty: that of the process
	SocketMode  string `toml:"socket_mode"`  // as that of Admin
}

// Unix returns the path of the console's socket, if it is a unix socket.
func (c Console) Unix() (path string, ok bool) { return strings.CutPrefix(c.Addr, schemeUnix) }

// Mode returns the permissions of the console's socket.
func (c Console) Mode() fs.FileMode { return socketMode(c.SocketMode) }

// Base returns the URL of the console. Listening is the address of its open socket, since the
// port in the file may be 0.
func (c Console) Base(listening string) *url.URL {
	if u, what := parseConsoleURL(c.URL); what == "" {
		return u
	}
	u := &url.URL{Scheme: "http", Host: c.Addr}
	if len(c.TLSCert) > 0 {
		u.Scheme = "https"
	}
	host, _, errAddr := net.SplitHostPort(c.Addr)
	_, port, errOpen := net.SplitHostPort(listening)
	if errAddr == nil && errOpen == nil {
		u.Host = net.JoinHostPort(host, port)
	}
	return u
}

// useless reports whether a key has no effect beside the address.
func (c Console) useless(key string) bool {
	_, unix := c.Unix()
	switch key {
	case "addr":
		return false
	case "tls_cert", "tls_key":
		return c.Addr == "" || unix
	case "sso_header", "socket_group", "socket_mode":
		return !unix
	}
	return c.Addr == ""
}

const consoleAddr, consoleURL = "console.addr", "console.url"

// console checks [console], after the listeners and doors, whose addresses are taken.
func (d *document) console() {
	c := &d.cfg.Console
	d.files("console.tls_cert", &c.TLSCert)
	d.files("console.tls_key", &c.TLSKey)
	if c.Addr == "" {
		if !d.failed[consoleAddr] {
			d.idle("console", reflect.TypeFor[Console](), "has no effect without an address", `write addr = "127.0.0.1:8025" in [console], or remove the line`, "addr")
		}
		return
	}
	d.consoleAddr(c)
	d.consoleURL(c)
	d.consoleTLS(c)
	d.consoleSSO(c)
	d.consoleSocket(c)
}

// idle warns about the keys of a table that is off, but for some.
func (d *document) idle(table string, keys reflect.Type, what, hint string, but ...string) {
	for _, key := range keysOf(keys, table) {
		if path := child(table, key); d.pos.has(path) && !slices.Contains(but, key) {
			d.warn(path, what, hint)
		}
	}
}

// consoleAddr checks the address, and that nothing else has it.
func (d *document) consoleAddr(c *Console) {
	const hint = `write "127.0.0.1:8025", "unix:/run/spamgate/console.sock", or "" for no console`
	socket, unix := c.Unix()
	addr, what := c.Addr, ""
	switch {
	case c.Addr == Systemd:
		what = `cannot be "systemd": a socket that systemd passes belongs to [listen] or a [[listener]]`
	case unix:
		what = socketPath(socket)
		addr = schemeUnix + filepath.Clean(socket)
	default:
		if err := checkListen(c.Addr); err != nil {
			what = fmt.Sprintf("%q %v", c.Addr, err)
		}
	}
	if what != "" {
		d.fail(consoleAddr, what, hint)
		return
	}
	d.takeWebAddr(takenAddr{addr, consoleAddr, "console", "console"})
	if unix && filepath.Clean(socket) == filepath.Clean(d.adminSocket()) {
		d.fail(consoleAddr, fmt.Sprintf("%q is the admin socket, where commands go", c.Addr), "write another path")
	}
}

// isLoopback reports whether only this machine can reach the host of an address or URL.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// consoleURL checks the URL, and writes it in its normal form.
func (d *document) consoleURL(c *Console) {
	if d.failed[consoleAddr] || d.failed[consoleURL] {
		return
	}
	_, unix := c.Unix()
	host, _, _ := net.SplitHostPort(c.Addr)
	local := !unix && isLoopback(host)
	const hint = `write url = "https://NAME", with the name that browsers use`
	if c.URL == "" {
		switch {
		case unix:
			d.fail(consoleURL, "is missing: a unix socket has no name that browsers could use", hint)
		case !local:
			d.fail(consoleURL, fmt.Sprintf("is missing: addr = %q is open beyond this machine", c.Addr), hint)
		}
		return
	}
	u, what := parseConsoleURL(c.URL)
	if what != "" {
		d.fail(consoleURL, fmt.Sprintf("%q %s", c.URL, what), `write "https://NAME" or "https://NAME:PORT", without a path`)
		return
	}
	c.URL = u.String()
	switch {
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		d.fail(consoleURL, fmt.Sprintf("%q would send passwords without TLS", c.URL),
			"write https, and tls_cert and tls_key, or let a proxy on this machine speak TLS")
	case u.Scheme == "http" && len(c.TLSCert) > 0:
		d.fail(consoleURL, fmt.Sprintf("%q has http, but tls_cert makes the console speak TLS", c.URL), "write https, or remove tls_cert and tls_key")
	case u.Scheme == "http" && !unix && !local:
		d.fail(consoleURL, fmt.Sprintf("%q is reached without TLS, and addr = %q is open beyond this machine", c.URL, c.Addr),
			`write addr = "127.0.0.1:PORT", or https with tls_cert and tls_key`)
	case !unix && !local && len(c.TLSCert) == 0:
		d.warn(consoleAddr, fmt.Sprintf("%q is open beyond this machine without TLS: what passes between the proxy and the gate can be read on the way", c.Addr),
			"write tls_cert and tls_key, or an address of this machine if the proxy is here")
	}
}

// parseConsoleURL parses a URL, and returns it with scheme, host and port alone, or what is
// wrong.
func parseConsoleURL(s string) (u *url.URL, what string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return nil, "is not a URL with http or https"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery || strings.HasSuffix(s, "#"):
		return nil, "has more than a scheme and a host"
	case u.Path != "" && u.Path != "/":
		return nil, "has a path; the console needs a name or a port of its own"
	}
	host, port := u.Hostname(), u.Port()
	if host, err = normalHost(host); err != nil || host == "" || strings.Contains(host, "%") {
		return nil, "has no valid host"
	}
	if strings.HasSuffix(u.Host, ":") || port != "" && !validPort(port) {
		return nil, "has no valid port"
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host += cmp.Or(":"+port, "")
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.TrimSuffix(host, ":")}, ""
}

// validPort reports whether a port has its usual form.
func validPort(port string) bool {
	n, err := parsePort(port, 1)
	return err == nil && strconv.FormatUint(n, 10) == port
}

// consoleTLS checks that each certificate has a key.
func (d *document) consoleTLS(c *Console) {
	const cert, key = "console.tls_cert", "console.tls_key"
	_, unix := c.Unix()
	switch {
	case d.failedBelow(cert) || d.failedBelow(key):
	case unix && len(c.TLSCert)+len(c.TLSKey) > 0:
		path := cert
		if len(c.TLSCert) == 0 {
			path = key
		}
		d.fail(path, fmt.Sprintf("has no effect with addr = %q: a proxy that uses the socket speaks TLS", c.Addr), "remove tls_cert and tls_key")
	default:
		d.certificates("console", c.TLSCert, c.TLSKey)
	}
}

// certificates checks that each certificate of a table has a key.
func (d *document) certificates(table string, certFiles, keyFiles Files) {
	cert, key := table+".tls_cert", table+".tls_key"
	switch {
	case d.failedBelow(cert) || d.failedBelow(key):
	case len(certFiles) > 0 && len(keyFiles) == 0:
		d.fail(key, "is missing; tls_cert has no effect without it", `write tls_key = "FILE"`)
	case len(keyFiles) > 0 && len(certFiles) == 0:
		d.fail(cert, "is missing; tls_key has no effect without it", `write tls_cert = "FILE"`)
	default:
		d.aKeyEach(key, certFiles, keyFiles)
	}
}

// oneFile returns the path of a file; none if it is empty.
func oneFile(path string) Files {
	if path == "" {
		return nil
	}
	return Files{path}
}

// aKeyEach checks that there are as many keys as certificates.
func (d *document) aKeyEach(path string, certFiles, keyFiles Files) {
	if len(certFiles) != len(keyFiles) {
		d.fail(path, fmt.Sprintf("has %s, but tls_cert has %s", text.Count(len(keyFiles), "file", "files"), text.Count(len(certFiles), "file", "files")),
			"write the key of each certificate, in the same order")
	}
}

// notForUsers are fields that a browser or a proxy writes for other purposes.
var notForUsers = []string{
	"Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Forwarded", "Host", "Origin", "Referer", "User-Agent",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
}

// consoleSSO checks the field that names the user.
func (d *document) consoleSSO(c *Console) {
	const path = "console.sso_header"
	if c.SSOHeader == "" || d.failed[path] {
		return
	}
	name := textproto.CanonicalMIMEHeaderKey(c.SSOHeader)
	_, unix := c.Unix()
	switch {
	case strings.Trim(c.SSOHeader, fieldNameBytes) != "" || c.SSOHeader[0] == '-':
		d.fail(path, fmt.Sprintf("%q is not the name of a header field", c.SSOHeader), `write letters, digits and "-", such as "X-Remote-User"`)
	case !unix && !d.failed[consoleAddr]:
		d.fail(path, fmt.Sprintf("%q with addr = %q would let everyone who reaches that address be any user", c.SSOHeader, c.Addr),
			`write addr = "unix:PATH", which only the proxy may open`)
	case slices.Contains(notForUsers, name) || strings.HasPrefix(name, "Sec-"):
		d.fail(path, fmt.Sprintf("%q has another purpose", c.SSOHeader), `write a field that only the proxy sets, such as "X-Remote-User"`)
	}
	c.SSOHeader = name
}

// fieldNameBytes are those of the names of header fields that all servers pass on: some turn
// "_" into "-".
const fieldNameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

// consoleSocket checks the keys of a unix socket.
func (d *document) consoleSocket(c *Console) {
	_, unix := c.Unix()
	for _, key := range []string{"console.socket_group", "console.socket_mode"} {
		if !unix && d.pos.has(key) && !d.failed[consoleAddr] {
			d.fail(key, fmt.Sprintf("has no effect with addr = %q, which is not a unix socket", c.Addr), `write addr = "unix:PATH", or remove the line`)
		}
	}
	d.socketMode("console", c.SocketMode, c.SocketGroup, "reach the console, and with sso_header be any user")
}
