package gate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"spamgate/internal/accounts"
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

// adminPart opens and closes them.
type adminPart struct {
	gate     *gate
	accounts *accounts.Store              // of the console
	open     atomic.Pointer[adminServers] // nil before the gate is open
	starting *admin.Server                // the admin socket of a gate that waits for its fleet; nil: there is none
	passed   [webServers]socket.DoorAddr  // where they are to be opened, or are open
}

// servers returns the present servers, none before the gate is open.
func (a *adminPart) servers() adminServers {
	if all := a.open.Load(); all != nil {
		return *all
	}
	return adminServers{}
}

// prepare opens the servers of a configuration (see part). At the start it only resolves their addresses,
// for begin.
func (a *adminPart) prepare(_ context.Context, was, c *config.Config) (ch change, err error) {
	if was == nil {
		for i, kind := range webKinds {
			if kind.addr(c) == "" {
				continue
			}
			if a.passed[i], err = kind.resolve(c, a.gate.in); err != nil {
				return ch, err
			}
		}
		if err := a.gate.in.CloseRest(); err != nil {
			return ch, err
		}
		return ch, socket.CheckPassed(c)
	}
	old := a.servers()
	all, err := a.openAll(was, c, false)
	discard := func() error {
		err := all.discard(old)
		a.keepSocket()
		return err
	}
	if err != nil {
		return ch, errors.Join(err, discard())
	}
	return change{
		commit:  func() { a.install(all) },
		discard: discard,
		retire:  func() error { return old.discard(all) },
	}, nil
}

// begin opens the servers of a gate that opens.
func (a *adminPart) begin() error {
	old := a.servers() // a reload before this may have opened some
	all, err := a.openAll(a.gate.config, a.gate.config, a.gate.in != nil)
	if err != nil {
		return errors.Join(err, all.discard(old))
	}
	a.install(all)
	return old.discard(all)
}

// openAll opens the configured servers, and keeps those whose settings are the same as in the
// configuration was. It closes none. After an error some are open.
func (a *adminPart) openAll(was, c *config.Config, takeOver bool) (all adminServers, err error) {
	old := a.servers()
	all = old
	if old.socket == nil || was.Admin.Socket != c.Admin.Socket || was.Admin.SocketMode != c.Admin.SocketMode || was.Admin.SocketGroup != c.Admin.SocketGroup {
		if all.socket, err = a.openSocket(c, takeOver || old.socket != nil && was.Admin.Socket == c.Admin.Socket); err != nil {
			return all, err
		}
	} else {
		a.keepSocket()
	}
	for i, kind := range webKinds {
		if old.web[i] != nil && kind.addr(was) == kind.addr(c) {
			continue
		}
		if all.web[i], err = a.openWeb(c, i); err != nil {
			return all, err
		}
	}
	return all, nil
}

// openStarting opens the admin socket before the gate can answer anything but that it is starting.
// What is wrong with the socket is said when the gate opens it.
func (a *adminPart) openStarting(c *config.Config) {
	o, err := a.socketOptions(c)
	if err == nil {
		a.starting, err = admin.Listen(o)
	}
	if err != nil {
		a.gate.log.Debug("without an admin socket while the gate starts", "error", err)
	}
}

// closeStarting ends what openStarting began.
func (a *adminPart) closeStarting() (err error) {
	if a.starting != nil {
		err = a.starting.Close()
		a.starting = nil
	}
	return err
}

// socketOptions makes the directory of the admin socket, and returns the options for a server that
// knows no gate.
func (a *adminPart) socketOptions(c *config.Config) (o admin.Options, err error) {
	if c.Admin.Socket == "" {
		return o, errors.New("[admin] socket is empty")
	}
	mode, _ := strconv.ParseUint(c.Admin.SocketMode, 8, 12) // Load has checked it
	if filepath.Dir(c.Admin.Socket) == c.State.Dir {
		err = atomicfile.In(c.State.Dir).Make()
	}
	return admin.Options{Socket: unixsocket.Socket{Path: c.Admin.Socket, Mode: fs.FileMode(mode), Group: c.Admin.SocketGroup}, Logger: a.gate.log}, err
}

// openSocket opens the admin socket, or returns nil if none is configured. If the default
// socket cannot be opened, the gate runs without it.
func (a *adminPart) openSocket(c *config.Config, takeOver bool) (*admin.Server, error) {
	path := c.Admin.Socket
	if path == "" {
		return nil, nil
	}
	o, err := a.socketOptions(c)
	if info, statErr := os.Stat(filepath.Dir(path)); statErr == nil && c.Admin.SocketGroup != "" && info.Mode()&0o011 == 0 {
		a.gate.log.Warn("the group cannot come to the admin socket, since it may not enter its directory: set another [admin] socket",
			"group", c.Admin.SocketGroup, "directory", filepath.Dir(path), "mode", info.Mode().Perm().String())
	}
	var s *admin.Server
	if err == nil {
		g := a.gate
		o.Gate, o.Editor, o.History, o.Fleet, o.Accounts, o.Metrics = g.answers, g.editor, g.history, g.answers, a.accounts, g.metrics.handler()
		o.TakeOver = takeOver || a.starting != nil
		if g.edges.Admin != nil {
			g.edges.Admin(o)
			return nil, nil
		}
		s, err = admin.Listen(o)
		if err := a.closeStarting(); err != nil {
			g.log.Warn("closing the admin socket of the start", "error", err)
		}
	}
	if err != nil && isDefaultSocket(c) {
		a.gate.log.Warn("without an admin socket: spamgate lists cannot ask this gate", "error", err)
		return nil, nil
	}
	return s, err
}

// isDefaultSocket reports whether the admin socket has the default path.
func isDefaultSocket(c *config.Config) bool { return c.Admin.Socket == c.State.DefaultSocket() }

// keepSocket recreates the admin socket if a successor took it over and then failed.
func (a *adminPart) keepSocket() {
	socket := a.servers().socket
	if socket == nil {
		return
	}
	if err := socket.Ensure(); err != nil {
		a.gate.log.Warn("the admin socket cannot be made anew", "error", err)
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
func (a *adminPart) close() error {
	return errors.Join(a.closeStarting(), a.servers().discard(adminServers{}))
}

// install makes other servers the present ones.
func (a *adminPart) install(all adminServers) {
	old := a.servers()
	a.open.Store(&all)
	for i, s := range all.web {
		if s == nil {
			continue
		}
		s.Certs.Store(webKinds[i].certs(a.gate))
		if s != old.web[i] {
			s.Serve()
			webKinds[i].announce(a, s)
		}
	}
}
