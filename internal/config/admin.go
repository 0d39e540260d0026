package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

var (
	socketModes = regexp.MustCompile(`^0?[0-7]{3}$`)

	// groupName is the name or number of a group. Directory services allow more
	// names than useradd(8).
	groupName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\ -]*\$?$`)
)

// DefaultSocket returns the path of the admin socket if the file sets none.
func (s State) DefaultSocket() string { return filepath.Join(s.Dir, "admin.sock") }

// admin checks [admin].
func (d *document) admin() {
	a := &d.cfg.Admin
	if a.Socket == "" && a.SocketGroup != "" {
		d.fail("admin.socket_group", "has no effect without a socket", "write a path in socket, or remove the line")
	}
	d.socketMode("admin", a.SocketMode, a.SocketGroup, "control the gate")
	d.socketTaken()
	if a.MetricsAddr != "" {
		d.metricsAddr(a.MetricsAddr)
	}
}

// adminSocket returns the path of the admin socket, "" if there is none.
func (d *document) adminSocket() string {
	if !d.pos.has("admin.socket") {
		return d.cfg.State.DefaultSocket()
	}
	return d.cfg.Admin.Socket
}

// socketTaken checks that no door has the path of the admin socket.
func (d *document) socketTaken() {
	socket := d.adminSocket()
	for _, door := range d.cfg.Doors {
		if path, ok := door.Unix(); ok && socket != "" && filepath.Clean(path) == filepath.Clean(socket) {
			d.fail(door.Key("addr"), fmt.Sprintf("%q is the admin socket, where commands go", door.Addr), "write another path")
		}
	}
}

// socketMode checks the mode and the group of a table's socket. Can says what those can do who
// may write to it.
func (d *document) socketMode(table, socketMode, socketGroup, can string) {
	path, group := table+".socket_mode", table+".socket_group"
	mode, err := strconv.ParseUint(socketMode, 8, 16)
	switch {
	case err != nil || !socketModes.MatchString(socketMode):
		d.fail(path, fmt.Sprintf("%q is not a mode", socketMode), `write it in octal digits: "0600", or "0660" for a group too`)
	case mode&0o007 != 0:
		d.fail(path, fmt.Sprintf("%q lets everyone on this machine %s", socketMode, can), `write "0600", or "0660" with a socket_group`)
	case mode&0o600 != 0o600:
		d.fail(path, fmt.Sprintf("%q keeps the gate's own user out", socketMode), `write "0600", or "0660" for a group too`)
	case socketGroup == "":
	case !groupName.MatchString(socketGroup):
		d.fail(group, fmt.Sprintf("%q is not the name of a group", socketGroup), `write a name or number, such as "adm"`)
	case mode&0o060 != 0o060:
		d.fail(group, fmt.Sprintf("has no effect with socket_mode = %q, which keeps the group out", socketMode), `write socket_mode = "0660", or remove the line`)
	}
}

// metricsAddr checks the address of the metrics, which no listener may have.
func (d *document) metricsAddr(addr string) {
	const path = "admin.metrics_addr"
	const hint = `write "127.0.0.1:9025", or "" for none`
	if addr == Systemd {
		d.fail(path, fmt.Sprintf("%q is not of the form host:port", addr), hint)
		return
	}
	if err := checkListen(addr); err != nil {
		d.fail(path, fmt.Sprintf("%q %v", addr, err), hint)
		return
	}
	for _, l := range d.cfg.Listeners {
		for _, mail := range l.Addr {
			if Overlap(mail, addr) {
				d.fail(path, fmt.Sprintf("%q is already an address for mail (%q of the listener %s)", addr, mail, l.Name), "give the metrics a port of their own")
			}
		}
	}
	for _, door := range d.cfg.Doors {
		if Overlap(door.Addr, addr) {
			d.fail(path, fmt.Sprintf("%q is already the address %q of the [[%s]] %s", addr, door.Addr, door.Table, door.Name), "give the metrics a port of their own")
		}
	}
}
