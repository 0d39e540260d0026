package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"

	"spamgate/internal/config"
	"spamgate/internal/text"
	"spamgate/smtpfilter/nexthop"
)

// What to do about an address to listen on.
const (
	wrongName      = "correct the name, or write an IP address"
	foreignAddress = `write an address of this machine, or ":PORT" for all of them`
)

// endpoint is a place to listen on: an address, or a socket that is open
// already.
type endpoint struct {
	addr *net.TCPAddr
	key  string       // what it is called when it is handed on
	of   string       // the configuration's key for it: see Config.Fault
	open net.Listener // from systemd or inherited, else nil
}

// endpoints resolves the addresses of the listener with that number. Nothing is
// opened; what systemd has passed, and what was inherited, is open anyway.
func endpoints(c *config.Config, i int, in *inherited) ([]endpoint, error) {
	var found []endpoint
	key := c.ListenerKey(i, "addr")
	for _, addr := range c.Listeners[i].Addr {
		if addr == config.Systemd {
			passed, err := systemdSockets(c, key, in)
			if err != nil {
				return nil, err
			}
			found = append(found, passed...)
			continue
		}
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			return nil, c.Fault(key, fmt.Sprintf("%q: %v", addr, err), wrongName)
		}
		found = append(found, endpoint{addr: tcp, key: socketKey(tcp), of: key, open: in.listener(tcp)})
	}
	return found, nil
}

// systemdSockets returns the sockets that systemd has passed, which must be there.
func systemdSockets(c *config.Config, of string, in *inherited) ([]endpoint, error) {
	listeners := in.systemd()
	if len(listeners) == 0 {
		var err error
		if listeners, err = activation.Listeners(); err != nil {
			return nil, c.Fault(of, fmt.Sprintf("%q: %v", config.Systemd, err), "start the gate through its socket unit, or set addr to host:port")
		}
	}
	var found []endpoint
	for _, l := range listeners {
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return nil, c.Fault(of, fmt.Sprintf("%q: systemd passed a socket that is not TCP", config.Systemd), "set ListenStream= in the socket unit to a port or to host:port")
		}
		found = append(found, endpoint{addr: tcp.Addr().(*net.TCPAddr), key: config.Systemd, of: of, open: l})
	}
	if len(found) == 0 {
		return nil, c.Fault(of, fmt.Sprintf("%q: systemd passed no socket", config.Systemd), "start the gate through its socket unit, or set addr to host:port")
	}
	return found, nil
}

// checkPassed refuses to start with sockets from systemd that no listener takes:
// their clients would connect, and wait for a greeting that never comes.
func checkPassed(c *config.Config) error {
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n == 0 || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil // sd_listen_fds(3): none, or for another process
	}
	for _, l := range c.Listeners {
		if slices.Contains(l.Addr, config.Systemd) {
			return nil
		}
	}
	return fmt.Errorf("systemd has passed %s that no listener takes: write addr = %q in [listen], or stop and disable the socket unit",
		text.Count(n, "socket", "sockets"), config.Systemd)
}

// listen opens the endpoint, unless it is open.
func (e endpoint) listen() (net.Listener, error) {
	if e.open != nil {
		return e.open, nil
	}
	network := "tcp"
	if e.addr.IP.To4() != nil {
		network = "tcp4" // 0.0.0.0 would be every IPv6 address, too
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // it is slower, and nothing here asks for it
	keepAliveOnce(&config)
	return config.Listen(context.Background(), network, e.addr.String())
}

// listenFault returns an error of opening an address as one of the configuration.
func listenFault(c *config.Config, key string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "stop what listens there, or set another port"
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need setcap or a systemd socket, see docs/operating.md"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = foreignAddress
	}
	return &placedError{c.Fault(key, err.Error(), hint), err}
}

// firstPublic returns an endpoint that others than this machine can reach.
func firstPublic(all []endpoint) (endpoint, bool) {
	for _, e := range all {
		if !e.addr.IP.IsLoopback() {
			return e, true
		}
	}
	return endpoint{}, false
}

// checkLoop refuses a next hop that is the gate itself: each message would come
// back until no connection is left.
func checkLoop(c *config.Config, all []endpoint) error {
	for i, hostport := range c.NextHop.TCP() {
		next, err := net.ResolveTCPAddr("tcp", hostport)
		if err != nil || !isLocal(next.IP) {
			continue // not found now, or another machine
		}
		for _, e := range all {
			if e.hears(next) {
				return c.Fault(c.HopKey(i), fmt.Sprintf("%s is the gate itself, which listens on %s", hostport, e.addr),
					"let the mail server listen on another port, and name that one")
			}
		}
	}
	return nil
}

// hears reports whether a connection to an address of this machine comes to the
// endpoint. To no address at all is to loopback.
func (e endpoint) hears(to *net.TCPAddr) bool {
	ip := e.addr.IP
	switch {
	case e.addr.Port != to.Port:
		return false
	case len(ip) == 0 || ip.Equal(net.IPv6zero):
		return true
	case ip.IsUnspecified():
		return to.IP.To4() != nil || len(to.IP) == 0
	case len(to.IP) == 0 || to.IP.IsUnspecified():
		return ip.IsLoopback()
	}
	return ip.Equal(to.IP)
}

// isLocal reports whether an address is one of this machine.
func isLocal(ip net.IP) bool {
	if ip.IsLoopback() || ip.IsUnspecified() || ip == nil {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// checkPublic refuses to open a gate that would relay mail for the world, or
// let the world fill a Maildir. Without recipient_domains it is the next hop
// that must refuse foreign recipients, and since it sees only the gate's
// address, it may not: so it is asked. While it says neither yes nor no,
// checkPublic waits and asks again, until ctx ends. What the wait means is in
// waiting, for the log.
func checkPublic(ctx context.Context, c *config.Config, all []endpoint, next nexthop.Target, waiting string, log *slog.Logger) error {
	public, ok := firstPublic(all)
	if !ok {
		return nil
	}
	if _, maildir := c.NextHop.Maildir(); maildir {
		if c.NextHop.AllowPublic {
			return nil
		}
		return fmt.Errorf("not safe beyond this machine: %s would let other machines deliver into %s; set listen.addr to 127.0.0.1, or next_hop.allow_public = true",
			public.addr, c.NextHop.Addr[0])
	}
	if len(c.Policy.RecipientDomains) > 0 {
		return nil
	}
	for _, server := range mailServers(next) {
		if err := checkRelay(ctx, server, public, waiting, log); err != nil {
			return err
		}
	}
	return nil
}

// errRelayUnknown is wrapped by the errors about a next hop that has not said
// whether it relays.
var errRelayUnknown = errors.New("it is not known whether the next hop relays")

// What a gate that waits for its next hop's answer does meanwhile.
const (
	waitingToOpen   = "not listening yet"
	waitingToReload = "not reloaded yet"
)

// checkRelay asks one server, until it knows.
func checkRelay(ctx context.Context, server *nexthop.SMTP, public endpoint, waiting string, log *slog.Logger) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		relays, reply, err := server.CheckRelay(ctx)
		switch {
		case err == nil && relays:
			return fmt.Errorf("not safe beyond this machine: the next hop %s relays for the gate (RCPT TO:<relay-test@example.net> was answered with %q), so everyone who can reach %s could send mail anywhere through it; set policy.recipient_domains to your domains, take the gate's address out of what the next hop trusts (in Postfix: mynetworks), or let it know the clients (next_hop.identity = \"xclient\", next_hop.proxy)",
				server, reply.String(), public.addr)
		case err == nil:
			log.Info("the next hop does not relay for the gate", "next_hop", server.String(), "reply", reply.String())
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w; %w", errRelayUnknown, ctx.Err(), err)
		}
		hint := "; policy.recipient_domains would make that unimportant"
		if errors.Is(err, nexthop.ErrNoXCLIENT) {
			hint = "" // there would be no mail all the same
		}
		log.Warn(waiting+": it is not known whether the next hop relays"+hint,
			"next_hop", server.String(), "retry_in", wait, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; %w", errRelayUnknown, ctx.Err(), err)
		}
	}
}
