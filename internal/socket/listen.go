// Package socket opens the listening sockets, and takes those that systemd or a
// predecessor hands over.
package socket

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/coreos/go-systemd/v22/activation"

	"spamgate/internal/config"
	"spamgate/internal/text"
)

// Remedies for an invalid listening address.
const (
	WrongName      = "correct the name, or write an IP address"
	ForeignAddress = `write an address of this machine, or ":PORT" for all of them`
)

// BindAddr is an address to listen on, or a socket that is open already.
type BindAddr struct {
	Addr *net.TCPAddr
	Key  string       // its name in a handover
	Of   string       // its key in the configuration: see Config.Fault
	open net.Listener // from systemd or inherited, else nil
}

// BindAddrs resolves the addresses of the i-th listener. It opens nothing; sockets that
// systemd has passed or that were inherited are open already.
func BindAddrs(c *config.Config, i int, in *Inherited) ([]BindAddr, error) {
	var found []BindAddr
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
			return nil, c.Fault(key, fmt.Sprintf("%q: %v", addr, err), WrongName)
		}
		found = append(found, BindAddr{Addr: tcp, Key: SocketKey(tcp), Of: key, open: in.Listener(tcp)})
	}
	return found, nil
}

// systemdSockets returns the sockets that systemd has passed. None is an error.
func systemdSockets(c *config.Config, name string, in *Inherited) ([]BindAddr, error) {
	listeners := in.systemd()
	if len(listeners) == 0 {
		var err error
		if listeners, err = activation.Listeners(); err != nil {
			return nil, c.Fault(name, fmt.Sprintf("%q: %v", config.Systemd, err), "start the gate through its socket unit, or set addr to host:port")
		}
	}
	var found []BindAddr
	for _, l := range listeners {
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return nil, c.Fault(name, fmt.Sprintf("%q: systemd passed a socket that is not TCP", config.Systemd), "set ListenStream= in the socket unit to a port or to host:port")
		}
		found = append(found, BindAddr{Addr: tcp.Addr().(*net.TCPAddr), Key: config.Systemd, Of: name, open: l})
	}
	if len(found) == 0 {
		return nil, c.Fault(name, fmt.Sprintf("%q: systemd passed no socket", config.Systemd), "start the gate through its socket unit, or set addr to host:port")
	}
	return found, nil
}

// CheckPassed returns an error if no listener uses the sockets that systemd has passed: their
// clients would connect and wait for a greeting that never comes.
func CheckPassed(c *config.Config) error {
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n == 0 || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil // sd_listen_fds(3): none, or for another process
	}
	for _, l := range c.Listeners {
		if slices.Contains(l.Addr, config.Systemd) {
			return nil
		}
	}
	return fmt.Errorf("systemd has passed %s that no listener takes: write addr = %q in [listen], or stop and mask the socket unit (systemctl mask --now)",
		text.Count(n, "socket", "sockets"), config.Systemd)
}

// Listen opens the socket, unless it is open already.
func (e BindAddr) Listen() (net.Listener, error) {
	if e.open != nil {
		return e.open, nil
	}
	network := "tcp"
	if e.Addr.IP.To4() != nil {
		network = "tcp4" // else 0.0.0.0 would include every IPv6 address
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // it is slower and not needed
	keepAliveOnce(&config)
	return config.Listen(context.Background(), network, e.Addr.String())
}

// FirstPublic returns the first address that other machines can reach.
func FirstPublic(all []BindAddr) (BindAddr, bool) {
	for _, e := range all {
		if !e.Addr.IP.IsLoopback() {
			return e, true
		}
	}
	return BindAddr{}, false
}

// Hears reports whether a connection to an address of this machine reaches the socket. An
// empty address means loopback.
func (e BindAddr) Hears(to *net.TCPAddr) bool {
	ip := e.Addr.IP
	switch {
	case e.Addr.Port != to.Port:
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

// IsLocal reports whether an address is one of this machine.
func IsLocal(ip net.IP) bool {
	if ip.IsLoopback() || ip.IsUnspecified() || ip == nil {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return canBind(ip)
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// canBind reports whether a socket can have an address. The system's list of addresses is
// not there for a service that may not use AF_NETLINK (RestrictAddressFamilies=).
func canBind(ip net.IP) bool {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip})
	if err != nil {
		return false
	}
	c.Close()
	return true
}
