package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/socket"
	"spamgate/internal/unixsocket"
	"spamgate/smtpfilter/nexthop"
)

// Faults collects what is wrong with the files, addresses and names in a configuration.
type faults struct {
	config   *config.Config
	Errors   []*config.Error
	Warnings []*config.Error
	Sockets  []socket.BindAddr // the addresses that could be resolved
}

// fail adds an error about a key.
func (f *faults) fail(key, what, hint string) {
	f.Errors = append(f.Errors, f.config.Fault(key, what, hint))
}

// Warn adds a warning about a key.
func (f *faults) warn(key, what, hint string) {
	f.Warnings = append(f.Warnings, f.config.Fault(key, what, hint))
}

// FindFaults finds what would make a start fail, or should be known before it, without opening
// a port, connecting or writing. It skips what depends on the user of the process.
func FindFaults(c *config.Config) *faults {
	f := &faults{config: c}
	f.listeners()
	f.doors()
	f.metrics()
	f.console()
	f.publish()
	f.nextHops()
	f.lists()
	f.proofs()
	f.state()
	f.leftOver()
	f.admin()
	return f
}

// CheckFiles returns all faults as one error, and adds the warnings to the configuration.
func CheckFiles(c *config.Config) error {
	f := FindFaults(c)
	c.Warnings = append(c.Warnings, f.Warnings...)
	return config.Join(f.Errors)
}

// listeners checks the addresses to listen on, and certificates.
func (f *faults) listeners() {
	checked := map[certs.Files]bool{}
	for i, l := range f.config.Listeners {
		for _, addr := range l.Addr {
			if addr == config.Systemd {
				continue
			}
			f.listenAddress(f.config.ListenerKey(i, "addr"), addr)
		}
		if l.TLS != "none" {
			f.certificates(certificateFiles(l.TLSCert, l.TLSKey), checked, func(key string) string { return f.config.ListenerKey(i, key) })
		}
	}
}

// metrics checks the address for metrics.
func (f *faults) metrics() {
	const key = "admin.metrics_addr"
	if addr := f.config.Admin.MetricsAddr; addr != "" {
		if tcp := f.address(key, addr); tcp != nil {
			f.taken(key, addr, tcp)
		}
	}
}

// listenAddress checks an address of a listener or door, and notes it.
func (f *faults) listenAddress(key, addr string) {
	if tcp := f.webAddress(key, addr); tcp != nil {
		f.Sockets = append(f.Sockets, socket.BindAddr{Addr: tcp})
	}
}

// webAddress checks an address to listen on, and returns it; nil if it cannot be resolved.
func (f *faults) webAddress(key, addr string) *net.TCPAddr {
	tcp := f.address(key, addr)
	if tcp != nil && !f.taken(key, addr, tcp) && !socket.IsLocal(tcp.IP) {
		f.warn(key, fmt.Sprintf("%q is not an address of this machine now; the start fails unless it has it then", addr), socket.ForeignAddress)
	}
	return tcp
}

// address resolves an address, or fails and returns nil.
func (f *faults) address(key, addr string) *net.TCPAddr {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		f.fail(key, fmt.Sprintf("%q: %v", addr, err), socket.WrongName)
		return nil
	}
	return tcp
}

// taken reports a name that stands for the address of another listener or door. For IP
// addresses the configuration was checked before.
func (f *faults) taken(key, addr string, tcp *net.TCPAddr) bool {
	own := socket.SocketKey(tcp)
	i := slices.IndexFunc(f.Sockets, func(other socket.BindAddr) bool {
		return other.Addr.Port != 0 && config.Overlap(own, socket.SocketKey(other.Addr))
	})
	if i < 0 {
		return false
	}
	f.fail(key, fmt.Sprintf("%q stands for %s, and cannot be opened beside %s, which a listener or door has", addr, own, socket.SocketKey(f.Sockets[i].Addr)),
		"remove one of the two, or write another port")
	return true
}

// certificates checks certificates and keys that were not checked before. Path returns the path
// of a key.
func (f *faults) certificates(files []certs.Files, checked map[certs.Files]bool, path func(key string) string) {
	for i, pair := range files {
		if checked[pair] {
			continue
		}
		checked[pair] = true
		number := ""
		if len(files) > 1 {
			number = fmt.Sprintf("certificate %d of %d: ", i+1, len(files))
		}
		f.certificate(pair, number, func(name string) string {
			return fmt.Sprintf("%s[%d]", path(name), i)
		})
	}
}

// certificate checks a certificate and its key. Number precedes what is wrong with it, and
// element returns the path of its element of a key.
func (f *faults) certificate(pair certs.Files, number string, element func(key string) string) {
	cert, err := certs.Open([]certs.Files{pair}, certs.Options{})
	if err != nil {
		key := element("tls_cert")
		if errors.As(err, new(*certs.KeyError)) {
			key = element("tls_key")
		}
		what, hint := splitHint(err)
		f.fail(key, number+what, hint)
		return
	}
	if expiry := cert.Certificates()[0].Expiry; expiry != "" {
		f.warn(element("tls_cert"), number+pair.Cert+": "+expiry, "put another one in the file, which is read again by itself")
	}
	if err := cert.Close(); err != nil {
		f.warn(element("tls_cert"), number+err.Error(), "")
	}
}

// splitHint splits the error "what: what to do" at its last colon.
func splitHint(err error) (what, hint string) {
	text := err.Error()
	i := strings.LastIndex(text, ": ")
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i+2:]
}

// nextHops checks the next hops and their certificate authorities.
func (f *faults) nextHops() {
	for _, h := range f.config.Hops() {
		f.nextHop(h)
	}
}

// nextHop checks the addresses of one next hop, and its certificate authorities.
func (f *faults) nextHop(h config.Hop) {
	for i, addr := range h.Addr {
		key := h.AddrKey(i)
		if dir, ok := strings.CutPrefix(addr, "maildir:"); ok {
			f.directory(key, dir)
		} else if path, ok := strings.CutPrefix(addr, "lmtp+unix:"); ok {
			if what := unixsocket.TooLong(path); what != "" {
				f.fail(key, what, "write a shorter path")
			} else if info, err := os.Stat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
				f.fail(key, path+" is not a socket", "write the path of the LMTP server's socket")
			}
		} else if _, err := nexthop.Parse(addr); err != nil {
			what, hint, _ := strings.Cut(err.Error(), "; ")
			f.fail(key, what, hint)
		}
	}
	f.authorities(h.Key("tls_ca"), h.TLSCA)
}

// MissingSockets warns about next hops whose Unix socket does not exist. The gate starts
// without it, and tries again with each message.
func (f *faults) MissingSockets() {
	for _, h := range f.config.Hops() {
		for i, addr := range h.Addr {
			path, ok := strings.CutPrefix(addr, "lmtp+unix:")
			if _, err := os.Stat(path); ok && errors.Is(err, fs.ErrNotExist) && unixsocket.TooLong(path) == "" {
				f.warn(h.AddrKey(i), path+" does not exist now: no mail passes here until it does", "start the LMTP server, or write the path of its socket")
			}
		}
	}
}

// authorities checks a PEM file of certificate authorities.
func (f *faults) authorities(key, path string) {
	if path == "" {
		return
	}
	if _, err := certs.LoadPool(path); err != nil {
		what, hint := splitHint(err)
		f.fail(key, what, hint)
	}
}

// lists checks what lists need apart from their files, which are checked by reading them.
func (f *faults) lists() {
	for i, l := range f.config.Lists {
		f.authorities(f.config.ListKey(i, "tls_ca"), l.TLSCA)
	}
}

// state checks the state directory.
func (f *faults) state() { f.directory("state.dir", f.config.State.Dir) }

// directory checks a directory that the gate creates if it is missing.
func (f *faults) directory(key, dir string) {
	for parent := dir; ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		switch {
		case err == nil && !info.IsDir() && parent == dir:
			f.fail(key, dir+" is not a directory", "write the path of a directory, or of one that is to be made")
		case err == nil && !info.IsDir():
			f.fail(key, fmt.Sprintf("%s cannot be made, since %s is not a directory", dir, parent), "write another path")
		case err != nil && parent != filepath.Dir(parent):
			continue // it is missing, or this user may not see it
		}
		return
	}
}

// admin checks the admin socket. A fault of the default socket is a warning, since the gate
// starts without it.
func (f *faults) admin() {
	a := f.config.Admin
	if a.Socket == "" {
		return
	}
	const key = "admin.socket"
	say := f.fail
	own := a.Socket == f.config.State.DefaultSocket()
	if own {
		say = func(key, what, hint string) { f.warn(key, what+": the gate goes without an admin socket", hint) }
	}
	info, err := os.Lstat(a.Socket)
	dir, dirErr := os.Stat(filepath.Dir(a.Socket))
	switch {
	case slices.Contains(f.config.HopAddrs(), "lmtp+unix:"+a.Socket):
		f.fail(key, a.Socket+" is the next hop's socket", `write another path, such as "/run/spamgate/admin.sock"`)
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		say(key, a.Socket+" exists and is not a socket", "remove it, or write another path")
	case !own && errors.Is(dirErr, fs.ErrNotExist):
		f.fail(key, fmt.Sprintf("there is no directory %s", filepath.Dir(a.Socket)), "make it for the gate's user (RuntimeDirectory= in the unit), or write another path")
	case !own && dirErr == nil && !dir.IsDir():
		f.fail(key, fmt.Sprintf("%s is not a directory", filepath.Dir(a.Socket)), "write another path")
	}
	if errors.Is(unixsocket.CheckPath(a.Socket), unixsocket.ErrLongPath) {
		say(key, unixsocket.TooLong(a.Socket), `write a shorter path, such as "/run/spamgate/admin.sock"`)
	}
	socketGroup("admin.socket_group", a.SocketGroup, say)
}

// socketGroup says that the group of a socket does not exist.
func socketGroup(key, group string, say func(key, what, hint string)) {
	if _, err := strconv.ParseUint(group, 10, 31); group == "" || err == nil {
		return
	}
	if _, err := user.LookupGroup(group); errors.As(err, new(user.UnknownGroupError)) {
		say(key, fmt.Sprintf("there is no group %q", group), "make it (groupadd), or write the name of another group")
	}
}
