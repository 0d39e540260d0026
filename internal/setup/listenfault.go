package setup

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"spamgate/internal/config"
	"spamgate/internal/socket"
	"spamgate/internal/unixsocket"
)

// ListenFault returns an error in opening an address, with its place in the configuration.
func ListenFault(c *config.Config, key string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, unixsocket.ErrInUse):
		hint = "stop it, or set another path"
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "stop what listens there, or set another port"
	case errors.Is(err, syscall.EACCES) && errors.As(err, new(*net.OpError)):
		hint = "ports below 1024 need setcap or a systemd socket, see docs/installation.md"
		if strings.HasPrefix(key, config.TableDNSServer) { // systemd's sockets are for listeners
			hint = "ports below 1024 need a capability, see \"Ports below 1024\" in docs/installation.md"
		}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = socket.ForeignAddress
	}
	return &placedError{c.Fault(key, err.Error(), hint), err}
}
