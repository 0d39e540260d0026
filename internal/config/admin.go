package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// maxSocketPath is the longest path of a unix socket on Linux (unix(7)). That of
// a relative one is known only where it is opened.
const maxSocketPath = 107

var (
	socketMode = regexp.MustCompile(`^0?[0-7]{3}$`)

	// groupName is a name or a number of a group. Names are freer than useradd(8)
	// would have them, where a directory service makes them.
	groupName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\ -]*\$?$`)
)

// DefaultSocket is where the admin socket is if nobody says.
func (s State) DefaultSocket() string { return filepath.Join(s.Dir, "admin.sock") }

// admin checks [admin].
func (d *document) admin() {
	a := &d.cfg.Admin
	if filepath.IsAbs(a.Socket) && len(a.Socket) > maxSocketPath {
		d.fail("admin.socket", fmt.Sprintf("has %d bytes, and the path of a socket at most %d", len(a.Socket), maxSocketPath), "write a shorter path")
	}
	if a.Socket == "" && a.SocketGroup != "" {
		d.fail("admin.socket_group", "is of no use without a socket", "write a path in socket, or remove the line")
	}
	if d.socketMode(a) && a.SocketGroup != "" {
		d.socketGroup(a)
	}
	if a.MetricsAddr != "" {
		d.metricsAddr(a.MetricsAddr)
	}
}

// socketMode checks the mode: who can write to the socket commands the gate.
func (d *document) socketMode(a *Admin) bool {
	const path = "admin.socket_mode"
	if !socketMode.MatchString(a.SocketMode) {
		d.fail(path, fmt.Sprintf("%q is no mode", a.SocketMode), `write it in octal digits: "0600", or "0660" for a group too`)
		return false
	}
	mode, _ := strconv.ParseUint(a.SocketMode, 8, 16) // it has octal digits only
	switch {
	case mode&0o007 != 0:
		d.fail(path, fmt.Sprintf("%q lets everyone on this machine command the gate", a.SocketMode), `write "0600", or "0660" with a socket_group`)
	case mode&0o600 != 0o600:
		d.fail(path, fmt.Sprintf("%q keeps the gate's own user out", a.SocketMode), `write "0600", or "0660" for a group too`)
	default:
		return true
	}
	return false
}

func (d *document) socketGroup(a *Admin) {
	const path = "admin.socket_group"
	mode, _ := strconv.ParseUint(a.SocketMode, 8, 16)
	if !groupName.MatchString(a.SocketGroup) {
		d.fail(path, fmt.Sprintf("%q is no name of a group", a.SocketGroup), `write a name or number, such as "adm"`)
	} else if mode&0o060 != 0o060 {
		d.fail(path, fmt.Sprintf("is of no use with socket_mode = %q, which keeps the group out", a.SocketMode), `write socket_mode = "0660", or remove the line`)
	}
}

func (d *document) metricsAddr(addr string) {
	const path = "admin.metrics_addr"
	err := checkListen(addr)
	switch {
	case addr == Systemd || err != nil:
		what := fmt.Sprintf("%q is not of the form host:port", addr)
		if addr != Systemd {
			what = fmt.Sprintf("%q %v", addr, err)
		}
		d.fail(path, what, `write "127.0.0.1:9025", or "" for none`)
	default:
		d.metricsTaken(path, addr)
	}
}

// metricsTaken notes that a listener has the address of the metrics.
func (d *document) metricsTaken(path, addr string) {
	for _, l := range d.cfg.Listeners {
		for _, mail := range l.Addr {
			if overlap(mail, addr) {
				d.fail(path, fmt.Sprintf("%q is where mail comes in (%q of the listener %s)", addr, mail, l.Name), "give the metrics a port of their own")
				return
			}
		}
	}
}
