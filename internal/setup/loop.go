package setup

import (
	"fmt"
	"net"

	"spamgate/internal/config"
	"spamgate/internal/socket"
)

// CheckLoop returns an error if the next hop is the gate itself: each message would come back
// until no connection is left.
func CheckLoop(c *config.Config, all []socket.BindAddr) error {
	for i, hostport := range c.NextHop.TCP() {
		next, err := net.ResolveTCPAddr("tcp", hostport)
		if err != nil || !socket.IsLocal(next.IP) {
			continue // not found now, or another machine
		}
		for _, e := range all {
			if e.Hears(next) {
				return c.Fault(c.HopKey(i), fmt.Sprintf("%s is the gate itself, which listens on %s", hostport, e.Addr),
					"let the mail server listen on another port, and name that one")
			}
		}
	}
	return nil
}
