package gate

import (
	"errors"
	"net/http"
	"os"

	"spamgate/internal/admin"
	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/internal/web"
)

// webKind is a kind of web.Server.
type webKind struct {
	addr     func(*config.Config) string // empty: there is none
	resolve  func(*config.Config, *socket.Inherited) (socket.DoorAddr, error)
	pages    func(*gate, *config.Config, *socket.OpenDoor) (web.Pages, error)
	certs    func(*gate) *certs.Reloader
	announce func(*gate, *web.Server)
	ended    string
	most     int  // connections
	asked    bool // by names that web.Server checks
}

// The indexes of webKinds and adminServers.web.
const (
	metricsServer = iota
	consoleServer
	publishServer
	webServers
)

// webKinds are all kinds.
var webKinds = [webServers]webKind{
	metricsServer: {
		addr: func(c *config.Config) string { return c.Admin.MetricsAddr },
		resolve: func(c *config.Config, in *socket.Inherited) (socket.DoorAddr, error) {
			return socket.ResolveTCP(c, "admin.metrics_addr", c.Admin.MetricsAddr, in)
		},
		pages:    (*gate).newMetricsPages,
		certs:    func(*gate) *certs.Reloader { return nil },
		announce: func(g *gate, s *web.Server) { g.log.Info("metrics", "addr", s.Open.Addr()) },
		ended:    "metrics are served no more", most: setup.MetricsConnections, asked: true,
	},
	consoleServer: {
		addr: func(c *config.Config) string { return c.Console.Addr }, resolve: socket.ResolveConsole,
		pages:    (*gate).newConsole,
		certs:    func(g *gate) *certs.Reloader { return g.consoleCerts },
		announce: func(g *gate, _ *web.Server) { g.announceConsole() },
		ended:    "the console is served no more", most: setup.ConsoleConnections,
	},
	publishServer: {
		addr: func(c *config.Config) string { return c.Publish.Addr },
		resolve: func(c *config.Config, in *socket.Inherited) (socket.DoorAddr, error) {
			return socket.ResolveTCP(c, "publish.addr", c.Publish.Addr, in)
		},
		pages:    (*gate).newPublished,
		certs:    func(g *gate) *certs.Reloader { return g.publishCerts },
		announce: func(g *gate, s *web.Server) { g.log.Info("published lists", "addr", s.Open.Addr()) },
		ended:    "published lists are served no more", most: setup.PublishConnections, asked: true,
	},
}

// openWeb opens a server, or returns nil if it is not configured. It does not serve yet.
func (g *gate) openWeb(c *config.Config, i int) (*web.Server, error) {
	kind := webKinds[i]
	if kind.addr(c) == "" {
		return nil, nil
	}
	addr := g.webPassed[i]
	g.webPassed[i] = socket.DoorAddr{}
	if addr.Of == "" { // a reload has set the address
		var err error
		if addr, err = kind.resolve(c, nil); err != nil {
			return nil, err
		}
	}
	open, err := addr.Open()
	if err != nil {
		return nil, setup.ListenFault(c, addr.Of, err)
	}
	pages, err := kind.pages(g, c, open)
	if err != nil {
		return nil, errors.Join(err, open.Close())
	}
	o := web.Options{Ended: kind.ended, Open: open, Pages: pages, Most: kind.most, Log: g.log}
	if kind.asked {
		o.Names = g.ownNames
	}
	return web.New(o), nil
}

// ownNames returns the names by which the gate is known.
func (g *gate) ownNames() []string {
	c := g.answers.now.Load().config
	names := []string{c.Hostname, c.Admin.MetricsAddr, c.Publish.Addr, c.Console.Base(c.Console.Addr).Host}
	if machine, err := os.Hostname(); err == nil {
		names = append(names, machine)
	}
	return names
}

// metricsPages are the metrics, and whether the gate lives and is ready. Everyone who can reach them
// can read them.
type metricsPages struct{ *http.ServeMux }

// Close implements web.Pages.
func (metricsPages) Close() {}

// newMetricsPages makes the pages with the metrics.
func (g *gate) newMetricsPages(*config.Config, *socket.OpenDoor) (web.Pages, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.metrics.handler())
	probes := admin.Probes(g.answers.Ready)
	for _, path := range admin.ProbePaths {
		mux.Handle(path, probes)
	}
	return metricsPages{mux}, nil
}
