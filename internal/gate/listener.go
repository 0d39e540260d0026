package gate

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
)

// runningListener is a configured listener in use: its sockets, and what its clients share.
type runningListener struct {
	config  config.Listener
	sockets []socket.BindAddr
	open    []net.Listener         // one for each socket, once it is open
	ports   []*smtpfilter.Listener // one for each socket, once it is open
	limiter *limit.Limiter
	tarpit  *limit.Tarpit   // for refusals that are delayed
	certs   *certs.Reloader // nil without TLS

	// memory is set once the listener's next hop has spoken LMTP.
	memory smtpfilter.Memory
}

// newListeners makes the configured listeners. It opens nothing.
func newListeners(c *config.Config, in *socket.Inherited, log *slog.Logger) (all []*runningListener, err error) {
	auto := setup.AutoConnections(c, setup.DescriptorLimit())
	for i, l := range c.Listeners {
		e := &runningListener{config: l, limiter: limit.New(setup.Limits(l, auto)), tarpit: limit.NewTarpit(int(l.TarpitMax))}
		all = append(all, e)
		if e.sockets, err = socket.BindAddrs(c, i, in); err != nil {
			break
		}
		if e.certs, err = setup.OpenCertificates(l, log); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, closeListeners(all))
	}
	return all, nil
}

// closeListeners closes what newListeners has opened. The sockets belong to the server.
func closeListeners(all []*runningListener) error {
	var errs []error
	for _, e := range all {
		if e.certs != nil {
			errs = append(errs, e.certs.Close())
		}
	}
	return errors.Join(errs...)
}

// openSockets opens the sockets of a listener.
func (e *runningListener) openSockets(c *config.Config) error {
	for _, s := range e.sockets {
		l, err := s.Listen()
		if err != nil {
			return setup.ListenFault(c, s.Of, err)
		}
		e.open = append(e.open, l)
	}
	return nil
}

// allSockets returns the sockets of all listeners.
func allSockets(all []*runningListener) []socket.BindAddr {
	var sockets []socket.BindAddr
	for _, e := range all {
		sockets = append(sockets, e.sockets...)
	}
	return sockets
}

// labelOf returns the name of a listener in the log and in metrics, which is "" if it is the
// only one.
func labelOf(e *runningListener, all []*runningListener) string {
	if len(all) == 1 {
		return ""
	}
	return e.config.Name
}

// listen adds a listener with an open socket to the SMTP server.
func (g *gate) listen(e *runningListener, l net.Listener) error {
	name := labelOf(e, g.listeners)
	g.metrics.addListener(name)
	port, err := g.server.Listen(l, name, g.settings(g.config, e, g.hops))
	if err != nil {
		return err
	}
	e.ports = append(e.ports, port)
	return nil
}

// settings returns the settings for the clients of a listener.
func (g *gate) settings(c *config.Config, e *runningListener, hops nextHops) smtpfilter.Settings {
	l := e.config
	s := setup.Settings(c, l)
	s.Checker, s.NextHop = g.checker(c, l.Lists), hops.of(c.HopOf(l))
	s.Signatures = g.proofs
	s.Limiter, s.Tarpit = e.limiter, e.tarpit
	if n := c.HopOf(l); n.LMTP() {
		e.memory = memoryOf(g.memory, c, n)
	}
	s.Memory = e.memory
	setup.SetRecipients(&s.Policy, g.recipients)
	if e.certs != nil {
		s.TLS = &tls.Config{GetCertificate: e.certs.GetCertificate, MinVersion: tls.VersionTLS12}
	}
	return s
}
