package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"spamgate/blocklist"
	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// entrance is a listener of the configuration while it runs: its sockets, and
// what its clients have in common.
type entrance struct {
	config  config.Listener
	sockets []endpoint
	ports   []*smtpfilter.Port // one for each socket, once it is open
	limiter *limit.Limiter
	tarpit  *limit.Tarpit   // for those who are held back, where anybody is
	cert    *certs.Reloader // nil without TLS
}

// entrances makes the listeners of the configuration. Nothing is opened.
func entrances(c *config.Config, in *inherited, log *slog.Logger) (all []*entrance, err error) {
	auto := autoConnections(c, descriptorLimit())
	for i, l := range c.Listeners {
		e := &entrance{config: l, limiter: limit.New(limits(l, auto)), tarpit: limit.NewTarpit(int(l.TarpitMax))}
		all = append(all, e)
		if e.sockets, err = endpoints(c, i, in); err != nil {
			break
		}
		if e.cert, err = openCertificate(l, log); err != nil {
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

// openCertificate is the listener's certificate, nil where it has none.
func openCertificate(l config.Listener, log *slog.Logger) (*certs.Reloader, error) {
	if l.TLS == "none" {
		return nil, nil
	}
	cert, err := certs.Open(l.TLSCert, l.TLSKey, certs.Options{Logger: log})
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	return cert, nil
}

// allSockets are the sockets of all entrances.
func allSockets(all []*entrance) []endpoint {
	var sockets []endpoint
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
		Wire:     wireConfig(l),
		Checker:  checker{g.store, g.metrics, l.Lists},
		NextHop:  next,
		Policy:   policy(c, l),
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

// wireConfig is what holds towards the clients of a listener. TLS has no
// certificate yet.
func wireConfig(l config.Listener) wire.Config {
	w := wire.Config{
		MaxMessageBytes: l.MaxMessageBytes,
		CommandTimeout:  l.CommandTimeout,
		DataTimeout:     l.DataTimeout,
		MaxErrors:       int(l.MaxErrors),
		MaxRefusals:     int(l.MaxRefusals),
		TrustedProxies:  l.TrustedProxies,
		ProxySources:    l.ProxyProtocol,
		GreetingDelay:   l.GreetingDelay,
		RejectPregreet:  l.Pregreet == "reject",
		MinDataRate:     l.MinDataRate,
		Normalize:       normalize(l),
	}
	switch l.TLS {
	case "required":
		w.TLSMode = wire.TLSRequired
	case "implicit":
		w.TLSMode = wire.TLSImplicit
	}
	return w
}

// normalize says whose bare newlines are mended, nil where nobody's are.
func normalize(l config.Listener) func(netip.Addr) bool {
	usually := l.BareNewline == "normalize"
	if !usually && len(l.BareNewlineExcept) == 0 {
		return nil
	}
	return func(client netip.Addr) bool {
		except := slices.ContainsFunc(l.BareNewlineExcept, func(p netip.Prefix) bool { return p.Contains(client) })
		return usually != except
	}
}

// policy is the part of the configuration that a listener's messages meet.
func policy(c *config.Config, l config.Listener) smtpfilter.Policy {
	return smtpfilter.Policy{
		HeaderFields:        c.Headers.Check,
		MaxHeaderBytes:      int(c.Headers.MaxBytes),
		MaxAddresses:        int(c.Headers.MaxAddresses),
		CheckBounces:        c.Headers.CheckBounces,
		RecipientDomains:    c.Policy.RecipientDomains,
		ExemptRecipients:    c.Policy.ExemptRecipients,
		ExemptClients:       c.Policy.ExemptClients,
		ExemptAuthenticated: l.ExemptAuthenticated,
		MaxRecipients:       int(l.MaxRecipients),
		MaxHops:             int(l.MaxHops),
		Tarpit:              l.Tarpit,
		TarpitExempt:        l.LimitsExempt,
		RejectText:          c.Policy.RejectText,
		Contact:             c.Policy.Contact,
	}
}

// checker asks the lists that a Store holds at the time: all, or those named.
type checker struct {
	store   *blocklist.Store
	metrics *metrics
	lists   []string
}

func (c checker) Judge() smtpfilter.Judge {
	return metered{judge{c.store.Set().Only(c.lists)}, c.metrics}
}

// findListener is the listener of a name, the first where none is named.
func findListener(c *config.Config, name string) (config.Listener, error) {
	if name == "" {
		return c.Listeners[0], nil
	}
	var names []string
	for _, l := range c.Listeners {
		if l.Name == name {
			return l, nil
		}
		names = append(names, strconv.Quote(l.Name))
	}
	return config.Listener{}, fmt.Errorf("there is no listener %q; there is %s", name, strings.Join(names, ", "))
}
