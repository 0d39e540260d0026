package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"

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

// listeners are all listeners, in the order of the configuration.
type listeners []*runningListener

// prepareListeners opens the certificates (see part), and at the start makes the listeners, without
// opening them.
func (g *gate) prepareListeners(_ context.Context, was, c *config.Config) (change, error) {
	if was == nil {
		all, err := newListeners(c, g.in, g.log)
		return replacement(nil, all.certs(), func() { g.listeners = all }), err
	}
	old := g.listeners.certs()
	reloaders := make([]*certs.Reloader, len(old))
	for i, e := range g.listeners {
		var err error
		if reloaders[i], err = e.certificates(c.Listeners[i], g.log); err != nil {
			return change{}, errors.Join(err, closeOthers(reloaders, old))
		}
	}
	return replacement(old, reloaders, func() { g.changeListeners(c, reloaders) }), nil
}

// certificates opens the certificates for a configuration, or returns the present ones if their
// files are the same.
func (e *runningListener) certificates(l config.Listener, log *slog.Logger) (*certs.Reloader, error) {
	if e.certs != nil && l.TLS != "none" && slices.Equal(e.config.TLSCert, l.TLSCert) && slices.Equal(e.config.TLSKey, l.TLSKey) {
		return e.certs, nil
	}
	return setup.OpenCertificates(l, log)
}

// changeListeners makes the listeners use a configuration, in which they are in the same order.
func (g *gate) changeListeners(c *config.Config, certificates []*certs.Reloader) {
	auto := setup.AutoConnections(c, setup.DescriptorLimit())
	for i, e := range g.listeners {
		l := c.Listeners[i]
		if l.TarpitMax != e.config.TarpitMax {
			e.tarpit = limit.NewTarpit(int(l.TarpitMax))
		}
		e.config, e.certs = l, certificates[i]
		e.limiter.SetConfig(setup.Limits(l, auto))
		for _, port := range e.ports {
			if _, err := port.Apply(g.settings(c, e, g.hops)); err != nil {
				g.log.Error("the listener keeps its old settings", "listener", l.Name, "error", err)
			}
		}
	}
}

// newListeners makes the configured listeners. It opens nothing.
func newListeners(c *config.Config, in *socket.Inherited, log *slog.Logger) (all listeners, err error) {
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
	if err == nil {
		err = setup.CheckLoop(c, all.sockets())
	}
	if err != nil {
		return nil, errors.Join(err, closeOthers(all.certs(), nil))
	}
	return all, nil
}

// certs returns the certificates of each listener, nil without TLS.
func (all listeners) certs() (present []*certs.Reloader) {
	for _, e := range all {
		present = append(present, e.certs)
	}
	return present
}

// addresses returns the addresses of the open listeners.
func (all listeners) addresses() (addrs []string) {
	for _, e := range all {
		for _, l := range e.open {
			addrs = append(addrs, l.Addr().String())
		}
	}
	return addrs
}

// held returns the sockets for a successor.
func (all listeners) held() (held []socket.Inheritable) {
	for _, e := range all {
		for i, l := range e.open {
			held = append(held, socket.Inheritable{Key: e.sockets[i].Key, Socket: l})
		}
	}
	return held
}

// release closes the sockets here; a successor may have copies.
func (all listeners) release() error {
	var errs []error
	for _, e := range all {
		for _, l := range e.open {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// openSockets opens the sockets of a listener, with listen if that is not nil.
func (e *runningListener) openSockets(c *config.Config, listen func(*net.TCPAddr) net.Listener) error {
	for _, s := range e.sockets {
		if listen != nil {
			e.open = append(e.open, listen(s.Addr))
			continue
		}
		l, err := s.Listen()
		if err != nil {
			return setup.ListenFault(c, s.Of, err)
		}
		e.open = append(e.open, l)
	}
	return nil
}

// sockets returns the sockets of all listeners.
func (all listeners) sockets() []socket.BindAddr {
	var sockets []socket.BindAddr
	for _, e := range all {
		sockets = append(sockets, e.sockets...)
	}
	return sockets
}

// labelOf returns the name of a listener in the log and in metrics, which is "" if it is the
// only one.
func labelOf(e *runningListener, all listeners) string {
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
