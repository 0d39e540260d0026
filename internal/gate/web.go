package gate

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"

	"spamgate/internal/admin"
	"spamgate/internal/certs"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/console"
	"spamgate/internal/publish"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/internal/web"
)

// webKind is a kind of web.Server.
type webKind struct {
	addr     func(*config.Config) string // empty: there is none
	resolve  func(*config.Config, *socket.Inherited) (socket.DoorAddr, error)
	pages    func(*adminPart, *config.Config, *socket.OpenDoor) (web.Pages, error)
	certs    func(*gate) *certs.Reloader
	announce func(*adminPart, *web.Server)
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
		pages:    (*adminPart).newMetricsPages,
		certs:    func(*gate) *certs.Reloader { return nil },
		announce: func(a *adminPart, s *web.Server) { a.gate.log.Info("metrics", "addr", s.Open.Addr()) },
		ended:    "metrics are served no more", most: setup.MetricsConnections, asked: true,
	},
	consoleServer: {
		addr: func(c *config.Config) string { return c.Console.Addr }, resolve: socket.ResolveConsole,
		pages:    (*adminPart).newConsole,
		certs:    func(g *gate) *certs.Reloader { return g.consoleCerts.inUse },
		announce: (*adminPart).announceConsole,
		ended:    "the console is served no more", most: setup.ConsoleConnections,
	},
	publishServer: {
		addr: func(c *config.Config) string { return c.Publish.Addr },
		resolve: func(c *config.Config, in *socket.Inherited) (socket.DoorAddr, error) {
			return socket.ResolveTCP(c, "publish.addr", c.Publish.Addr, in)
		},
		pages:    (*adminPart).newPublished,
		certs:    func(g *gate) *certs.Reloader { return g.publishCerts.inUse },
		announce: func(a *adminPart, s *web.Server) { a.gate.log.Info("published lists", "addr", s.Open.Addr()) },
		ended:    "published lists are served no more", most: setup.PublishConnections, asked: true,
	},
}

// openWeb opens a server, or returns nil if it is not configured. It does not serve yet.
func (a *adminPart) openWeb(c *config.Config, i int) (*web.Server, error) {
	kind := webKinds[i]
	if kind.addr(c) == "" {
		return nil, nil
	}
	addr := a.passed[i]
	a.passed[i] = socket.DoorAddr{}
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
	pages, err := kind.pages(a, c, open)
	if err != nil {
		return nil, errors.Join(err, open.Close())
	}
	o := web.Options{Ended: kind.ended, Open: open, Pages: pages, Most: kind.most, Log: a.gate.log}
	if kind.asked {
		o.Names = a.ownNames
	}
	return web.New(o), nil
}

// ownNames returns the names by which the gate is known.
func (a *adminPart) ownNames() []string {
	c := a.gate.answers.current.Load().config
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
func (a *adminPart) newMetricsPages(*config.Config, *socket.OpenDoor) (web.Pages, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.gate.metrics.handler())
	probes := admin.Probes(a.gate.answers.Ready)
	for _, path := range admin.ProbePaths {
		mux.Handle(path, probes)
	}
	return metricsPages{mux}, nil
}

// newPublished makes the pages with the published lists.
func (a *adminPart) newPublished(c *config.Config, _ *socket.OpenDoor) (web.Pages, error) {
	tokens, err := publish.ReadTokens(c.Publish.Tokens)
	if err != nil {
		return nil, err
	}
	return a.gate.publisher.newServer(c, tokens), nil
}

// newConsole makes the pages for a socket.
func (a *adminPart) newConsole(c *config.Config, open *socket.OpenDoor) (web.Pages, error) {
	g := a.gate
	_, unix := c.Console.Unix()
	return console.New(console.Options{
		Config: g.fleet.config,
		Settings: func() console.Settings {
			current := g.answers.current.Load().config.Console
			return console.Settings{URL: current.Base(open.Addr()), SSOHeader: current.SSOHeader}
		},
		Set:      g.store.Set,
		Gate:     g.answers,
		Fleet:    g.answers,
		Accounts: a.accounts,
		Editor:   g.editor,
		Check: check.New(check.Options{
			Config:     g.fleet.config,
			Set:        g.store.Set,
			Recipients: func() ([]*recipients.File, error) { return g.answers.current.Load().recipients, nil },
			DNS:        g.dns,
			Proofs:     g.proofs,
		}),
		History:  g.history.reader,
		Recorder: g.history.recorder.Load,
		Show:     g.show,
		Logger:   g.log,
		Unix:     unix,
	})
}

// announceConsole logs where the console is, and why nobody could log in.
func (a *adminPart) announceConsole(s *web.Server) {
	g, addr := a.gate, s.Open.Addr()
	g.log.Info("console", "url", g.config.Console.Base(addr).String(), "addr", addr)
	switch n, err := a.accounts.Check(); {
	case err != nil:
		g.log.Warn("nobody can log in to the console", "error", err)
	case n == 0:
		g.log.Warn("nobody can log in to the console yet: run spamgate console user add NAME --role admin")
	}
}

// ownConsole makes this process the owner of the console's unix socket, with the mode that is
// configured.
func (a *adminPart) ownConsole() {
	g, s := a.gate, a.servers().web[consoleServer]
	if s == nil {
		return
	}
	if !s.Open.InPlace() {
		g.log.Warn("the file of the console's socket is gone, so that nobody can reach it: SIGUSR2 or a restart makes it again", "addr", s.Open.Addr())
		return
	}
	if err := s.Open.Own(g.config.Console.Mode()); err != nil {
		g.log.Warn("the console's socket keeps its mode", "addr", s.Open.Addr(), "error", err)
	}
}

// tableCerts are the certificates of [console] or [publish].
type tableCerts struct {
	table string
	keys  func(*config.Config) (addr string, cert, key config.Files)
	log   *slog.Logger
	inUse *certs.Reloader // nil without TLS
}

// prepare opens the certificates (see part), and keeps the present ones if their files are the same.
func (t *tableCerts) prepare(_ context.Context, was, c *config.Config) (change, error) {
	var reloader *certs.Reloader
	var err error
	old := t.inUse
	addr, cert, key := t.keys(c)
	same := func() bool {
		_, oldCert, oldKey := t.keys(was)
		return slices.Equal(cert, oldCert) && slices.Equal(key, oldKey)
	}
	switch {
	case addr == "" || len(cert) == 0:
	case old != nil && same():
		reloader = old
	default:
		reloader, err = setup.OpenCertificateFiles("["+t.table+"]", cert, key, t.log)
	}
	return replacement([]*certs.Reloader{old}, []*certs.Reloader{reloader}, func() { t.inUse = reloader }), err
}

func (t *tableCerts) close() error { return closeOthers([]*certs.Reloader{t.inUse}, nil) }

// servedCertificates are the certificates of a listener, or of the console.
type servedCertificates struct {
	listener string
	certs    *certs.Reloader
}

// certificates returns the certificates that the gate has now.
func (g *gate) certificates() []servedCertificates {
	var all []servedCertificates
	for _, l := range g.listeners {
		if l.certs != nil {
			all = append(all, servedCertificates{labelOf(l, g.listeners), l.certs})
		}
	}
	if console := g.consoleCerts.inUse; console != nil {
		all = append(all, servedCertificates{"console", console})
	}
	return all
}
