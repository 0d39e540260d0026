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
	"spamgate/internal/config"
	"spamgate/internal/durable"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
)

// adminEnd is where a running gate is asked about itself. Each part is nil where
// it is not configured.
type adminEnd struct {
	socket  *admin.Server
	metrics *metricsServer
}

// adminEnd is the gate's, empty before it is open.
func (g *gate) adminEnd() adminEnd {
	if end := g.admin.Load(); end != nil {
		return *end
	}
	return adminEnd{}
}

// openAdmin opens what the configuration asks for, in place of what is open where
// that has changed. Nothing of old is closed: see adminEnd.retire.
func (g *gate) openAdmin(c *config.Config, old adminEnd, takeOver bool) (end adminEnd, err error) {
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
	return end, nil
}

// openSocket opens the admin socket, nil where there is to be none. Where the
// configuration is silent about it the gate does without rather than not start.
func (g *gate) openSocket(c *config.Config, takeOver bool) (*admin.Server, error) {
	path := c.Admin.Socket
	if path == "" {
		return nil, nil
	}
	mode, err := strconv.ParseUint(c.Admin.SocketMode, 8, 12)
	if err != nil {
		return nil, fmt.Errorf("[admin] socket_mode: %w", err)
	}
	if filepath.Dir(path) == c.State.Dir {
		err = durable.In(c.State.Dir).Make()
	}
	if info, statErr := os.Stat(filepath.Dir(path)); statErr == nil && c.Admin.SocketGroup != "" && info.Mode()&0o011 == 0 {
		g.log.Warn("the group cannot come to the admin socket, since it may not enter its directory: set another [admin] socket",
			"group", c.Admin.SocketGroup, "directory", filepath.Dir(path), "mode", info.Mode().Perm().String())
	}
	var s *admin.Server
	if err == nil {
		s, err = admin.Listen(admin.Options{
			Socket:   admin.Socket{Path: path, Mode: fs.FileMode(mode), Group: c.Admin.SocketGroup},
			Gate:     g.answers,
			Metrics:  g.metrics.handler(),
			Logger:   g.log,
			TakeOver: takeOver,
		})
	}
	if err != nil && isDefaultSocket(c) {
		g.log.Warn("without an admin socket: spamgate lists cannot ask this gate", "error", err)
		return nil, nil
	}
	return s, err
}

// isDefaultSocket reports whether the socket is where it is if nobody says.
func isDefaultSocket(c *config.Config) bool { return c.Admin.Socket == c.State.DefaultSocket() }

// openMetrics listens for Prometheus, nil where it is not to.
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
	return serveMetrics(l, socket.SocketKey(addr), g.metrics.handler(), g.log), nil
}

// takeMetrics takes the socket for metrics from the gate that this one takes over
// from, if it has one.
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

// keepSocket makes the admin socket anew where a gate that was to take over has
// taken it, and then failed.
func (g *gate) keepSocket() {
	socket := g.adminEnd().socket
	if socket == nil {
		return
	}
	if err := socket.Ensure(); err != nil {
		g.log.Warn("the admin socket cannot be made anew", "error", err)
	}
}

// held is the socket to hand on: that of metrics. The other is a file, which the
// successor replaces.
func (e adminEnd) held() []socket.InheritableListener {
	if e.metrics == nil {
		return nil
	}
	return []socket.InheritableListener{{Key: e.metrics.key, Listener: e.metrics.listener}}
}

// discard closes what is not old's.
func (e adminEnd) discard(old adminEnd) error {
	var errs []error
	if e.socket != nil && e.socket != old.socket {
		errs = append(errs, e.socket.Close())
	}
	if e.metrics != nil && e.metrics != old.metrics {
		errs = append(errs, e.metrics.Close())
	}
	return errors.Join(errs...)
}

// close closes everything.
func (e adminEnd) close() error { return e.discard(adminEnd{}) }

// replaceAdmin makes another end the gate's, and closes what it leaves over.
func (g *gate) replaceAdmin(end adminEnd) {
	old := g.adminEnd()
	g.admin.Store(&end)
	if err := old.discard(end); err != nil {
		g.log.Warn("closing the old admin socket", "error", err)
	}
}
