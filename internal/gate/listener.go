package gate

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"

	"spamgate/blocklist/judge"
	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
)

// entrance is a listener of the configuration while it runs: its sockets, and
// what its clients have in common.
type entrance struct {
	config  config.Listener
	sockets []socket.BindAddr
	ports   []*smtpfilter.Port // one for each socket, once it is open
	limiter *limit.Limiter
	tarpit  *limit.Tarpit   // for those who are held back, where anybody is
	cert    *certs.Reloader // nil without TLS
}

// entrances makes the listeners of the configuration. Nothing is opened.
func entrances(c *config.Config, in *socket.Inherited, log *slog.Logger) (all []*entrance, err error) {
	auto := setup.AutoConnections(c, setup.DescriptorLimit())
	for i, l := range c.Listeners {
		e := &entrance{config: l, limiter: limit.New(setup.Limits(l, auto)), tarpit: limit.NewTarpit(int(l.TarpitMax))}
		all = append(all, e)
		if e.sockets, err = socket.BindAddrs(c, i, in); err != nil {
			break
		}
		if e.cert, err = setup.OpenCertificate(l, log); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, closeEntrances(all))
	}
	return all, nil
}

// closeEntrances ends what entrances has made; their ports are the server's.
func closeEntrances(all []*entrance) error {
	var errs []error
	for _, e := range all {
		if e.cert != nil {
			errs = append(errs, e.cert.Close())
		}
	}
	return errors.Join(errs...)
}

// allSockets are the sockets of all entrances.
func allSockets(all []*entrance) []socket.BindAddr {
	var sockets []socket.BindAddr
	for _, e := range all {
		sockets = append(sockets, e.sockets...)
	}
	return sockets
}

// listen makes a port of an open socket.
func (g *gate) listen(e *entrance, l net.Listener) *smtpfilter.Port {
	name := ""
	if len(g.entrances) > 1 {
		name = e.config.Name
	}
	g.metrics.addListener(name)
	port := g.server.Listen(l, name, g.settings(g.config, e, g.next))
	e.ports = append(e.ports, port)
	return port
}

// settings is what holds for the clients of an entrance.
func (g *gate) settings(c *config.Config, e *entrance, next nexthop.Target) smtpfilter.Settings {
	l := e.config
	s := smtpfilter.Settings{
		Wire:     setup.WireConfig(l),
		Checker:  meteredChecker{judge.Checker{Store: g.store, Lists: l.Lists}, g.metrics},
		NextHop:  next,
		Policy:   setup.Policy(c, l),
		NoNames:  !l.NameLookup,
		PassAuth: l.Auth == "pass",
		Limiter:  e.limiter,
		Tarpit:   e.tarpit,
	}
	if g.memory != nil {
		s.Memory = g.memory
	}
	if e.cert != nil {
		s.Wire.TLS = &tls.Config{GetCertificate: e.cert.GetCertificate, MinVersion: tls.VersionTLS12}
	}
	return s
}
