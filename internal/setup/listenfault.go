package setup

import (
	"errors"
	"syscall"

	"spamgate/internal/config"
	"spamgate/internal/socket"
)

// ListenFault returns an error in opening an address, with its place in the configuration.
func ListenFault(c *config.Config, key string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "stop what listens there, or set another port"
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need setcap or a systemd socket, see docs/installation.md"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = socket.ForeignAddress
	}
	return &placedError{c.Fault(key, err.Error(), hint), err}
}
