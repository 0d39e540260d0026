package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/internal/unixsocket"
)

// adminServers are the servers for questions about the running gate. Each is nil if it is
// not configured.
type adminServers struct {
	socket  *admin.Server
	metrics *metricsServer
	console *webServer
	publish *webServer
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
	if old.metrics == nil || was.MetricsAddr != c.Admin.MetricsAddr {
		if end.metrics, err = g.openMetrics(c); err != nil {
			return old, errors.Join(err, end.discard(old))
		}
	}
	if end.console, err = g.openConsole(c, old.console); err != nil {
		return old, errors.Join(err, end.discard(old))
	}
	if end.publish, err = g.openPublish(c, old.publish); err != nil {
		return old, errors.Join(err, end.discard(old))
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

// openMetrics opens the server for Prometheus, or returns nil if none is configured.
func (g *gate) openMetrics(c *config.Config) (*metricsServer, error) {
	if c.Admin.MetricsAddr == "" {
		return nil, nil
	}
	addr, err := net.ResolveTCPAddr("tcp", c.Admin.MetricsAddr)
	if err != nil {
		return nil, c.Fault("admin.metrics_addr", fmt.Sprintf("%q: %v", c.Admin.MetricsAddr, err), socket.WrongName)
	}
	l := g.metricsPassed
	g.metricsPassed = nil
	if l == nil {
		if l, err = net.ListenTCP("tcp", addr); err != nil {
			return nil, setup.ListenFault(c, "admin.metrics_addr", err)
		}
	}
	g.log.Info("metrics", "addr", l.Addr().String())
	return serveMetrics(l, socket.SocketKey(addr), g.metrics.handler(), admin.Probes(g.answers.Ready), g.log), nil
}

// takeMetrics takes the socket for metrics from the predecessor, if it had one.
func takeMetrics(c *config.Config, in *socket.Inherited) (net.Listener, error) {
	if c.Admin.MetricsAddr == "" {
		return nil, nil
	}
	addr, err := net.ResolveTCPAddr("tcp", c.Admin.MetricsAddr)
	if err != nil {
		return nil, c.Fault("admin.metrics_addr", fmt.Sprintf("%q: %v", c.Admin.MetricsAddr, err), socket.WrongName)
	}
	return in.Listener(addr), nil
}

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
	if e.metrics != nil {
		held = append(held, socket.Inheritable{Key: e.metrics.key, Socket: e.metrics.listener})
	}
	if e.console != nil {
		held = append(held, e.console.open.Inheritable()...)
	}
	if e.publish != nil {
		held = append(held, e.publish.open.Inheritable()...)
	}
	return held
}

// retire stops accepting clients of the sockets that were handed over.
func (e adminServers) retire() error {
	var errs []error
	if e.metrics != nil {
		errs = append(errs, e.metrics.retire())
	}
	if e.console != nil {
		errs = append(errs, e.console.retire())
	}
	if e.publish != nil {
		errs = append(errs, e.publish.retire())
	}
	return errors.Join(errs...)
}

// discard closes the servers that old does not have.
func (e adminServers) discard(old adminServers) error {
	var errs []error
	if e.socket != nil && e.socket != old.socket {
		errs = append(errs, e.socket.Close())
	}
	if e.metrics != nil && e.metrics != old.metrics {
		errs = append(errs, e.metrics.Close())
	}
	if e.console != nil && e.console != old.console {
		errs = append(errs, e.console.Close())
	}
	if e.publish != nil && e.publish != old.publish {
		errs = append(errs, e.publish.Close())
	}
	return errors.Join(errs...)
}

// close closes all servers.
func (e adminServers) close() error { return e.discard(adminServers{}) }

// replaceAdmin installs other servers, and closes the old ones that are not among them.
func (g *gate) replaceAdmin(end adminServers) {
	old := g.adminServers()
	g.admin.Store(&end)
	if s := end.console; s != nil {
		s.certs.Store(g.consoleCerts)
		if s != old.console {
			s.serve()
			g.announceConsole()
		}
	}
	if s := end.publish; s != nil {
		s.certs.Store(g.publishCerts)
		if s != old.publish {
			s.serve()
			g.log.Info("published lists", "addr", s.open.Addr())
		}
	}
	if err := old.discard(end); err != nil {
		g.log.Warn("closing the old admin socket", "error", err)
	}
}
