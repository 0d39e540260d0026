package gate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/socket"
	"spamgate/internal/unixsocket"
	"spamgate/internal/web"
)

// adminServers are the servers for questions about the running gate. Each is nil if it is
// not configured.
type adminServers struct {
	socket *admin.Server
	web    [webServers]*web.Server
}

// adminServers returns the gate's servers, none before the gate is open.
func (g *gate) adminServers() adminServers {
	if end := g.admin.Load(); end != nil {
		return *end
	}
	return adminServers{}
}

// openAdmin opens the configured servers, and keeps those of old whose settings are the
// same. It closes none of old: see replaceAdmin.
func (g *gate) openAdmin(c *config.Config, old adminServers, takeOver bool) (end adminServers, err error) {
	was := g.config.Admin
	end = old
	if old.socket == nil || was.Socket != c.Admin.Socket || was.SocketMode != c.Admin.SocketMode || was.SocketGroup != c.Admin.SocketGroup {
		if end.socket, err = g.openSocket(c, takeOver || old.socket != nil && was.Socket == c.Admin.Socket); err != nil {
			return old, err
		}
	} else {
		g.keepSocket()
	}
	for i, kind := range webKinds {
		if old.web[i] != nil && kind.addr(g.config) == kind.addr(c) {
			continue
		}
		if end.web[i], err = g.openWeb(c, i); err != nil {
			return old, errors.Join(err, end.discard(old))
		}
	}
	return end, nil
}

// openStarting opens the admin socket before the gate can answer anything but that it is starting.
// What is wrong with the socket is said when the gate opens it.
func (g *gate) openStarting(c *config.Config) {
	o, err := g.socketOptions(c)
	if err == nil {
		g.starting, err = admin.Listen(o)
	}
	if err != nil {
		g.log.Debug("without an admin socket while the gate starts", "error", err)
	}
}

// closeStarting ends what openStarting began.
func (g *gate) closeStarting() {
	if g.starting != nil {
		g.closing("the admin socket of the start", g.starting.Close())
		g.starting = nil
	}
}

// socketOptions makes the directory of the admin socket, and returns the options for a server that
// knows no gate.
func (g *gate) socketOptions(c *config.Config) (o admin.Options, err error) {
	if c.Admin.Socket == "" {
		return o, errors.New("[admin] socket is empty")
	}
	mode, _ := strconv.ParseUint(c.Admin.SocketMode, 8, 12) // Load has checked it
	if filepath.Dir(c.Admin.Socket) == c.State.Dir {
		err = atomicfile.In(c.State.Dir).Make()
	}
	return admin.Options{Socket: unixsocket.Socket{Path: c.Admin.Socket, Mode: fs.FileMode(mode), Group: c.Admin.SocketGroup}, Logger: g.log}, err
}

// openSocket opens the admin socket, or returns nil if none is configured. If the default
// socket cannot be opened, the gate runs without it.
func (g *gate) openSocket(c *config.Config, takeOver bool) (*admin.Server, error) {
	path := c.Admin.Socket
	if path == "" {
		return nil, nil
	}
	o, err := g.socketOptions(c)
	if info, statErr := os.Stat(filepath.Dir(path)); statErr == nil && c.Admin.SocketGroup != "" && info.Mode()&0o011 == 0 {
		g.log.Warn("the group cannot come to the admin socket, since it may not enter its directory: set another [admin] socket",
			"group", c.Admin.SocketGroup, "directory", filepath.Dir(path), "mode", info.Mode().Perm().String())
	}
	var s *admin.Server
	if err == nil {
		o.Gate, o.Editor, o.History, o.Fleet, o.Accounts, o.Metrics = g.answers, g.editor, g.history, g.answers, g.accounts, g.metrics.handler()
		o.TakeOver = takeOver || g.starting != nil
		s, err = admin.Listen(o)
		g.closeStarting()
	}
	if err != nil && isDefaultSocket(c) {
		g.log.Warn("without an admin socket: spamgate lists cannot ask this gate", "error", err)
		return nil, nil
	}
	return s, err
}

// isDefaultSocket reports whether the admin socket has the default path.
func isDefaultSocket(c *config.Config) bool { return c.Admin.Socket == c.State.DefaultSocket() }

// keepSocket recreates the admin socket if a successor took it over and then failed.
func (g *gate) keepSocket() {
	socket := g.adminServers().socket
	if socket == nil {
		return
	}
	if err := socket.Ensure(); err != nil {
		g.log.Warn("the admin socket cannot be made anew", "error", err)
	}
}

// held returns the sockets to hand over. The admin socket is a file, which the successor
// replaces.
func (e adminServers) held() (held []socket.Inheritable) {
	for _, s := range e.web {
		if s != nil {
			held = append(held, s.Open.Inheritable()...)
		}
	}
	return held
}

// retire stops accepting clients of the sockets that were handed over.
func (e adminServers) retire() error {
	var errs []error
	for _, s := range e.web {
		if s != nil {
			errs = append(errs, s.Retire())
		}
	}
	return errors.Join(errs...)
}

// discard closes the servers that old does not have.
func (e adminServers) discard(old adminServers) error {
	var errs []error
	if e.socket != nil && e.socket != old.socket {
		errs = append(errs, e.socket.Close())
	}
	for i, s := range e.web {
		if s != nil && s != old.web[i] {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// close closes all servers.
func (e adminServers) close() error { return e.discard(adminServers{}) }

// replaceAdmin installs other servers, and closes the old ones that are not among them.
func (g *gate) replaceAdmin(end adminServers) {
	old := g.adminServers()
	g.admin.Store(&end)
	for i, s := range end.web {
		if s == nil {
			continue
		}
		s.Certs.Store(webKinds[i].certs(g))
		if s != old.web[i] {
			s.Serve()
			webKinds[i].announce(g, s)
		}
	}
	if err := old.discard(end); err != nil {
		g.log.Warn("closing the old admin socket", "error", err)
	}
}
