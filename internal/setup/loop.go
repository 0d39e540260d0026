package setup

import (
	"fmt"
	"net"

	"spamgate/internal/config"
	"spamgate/internal/socket"
)

// CheckLoop returns an error if a next hop is the gate itself: each message would come back
// until no connection is left.
func CheckLoop(c *config.Config, all []socket.BindAddr) error {
	for _, h := range c.Hops() {
		for i, hostport := range h.TCP() {
			next, err := net.ResolveTCPAddr("tcp", hostport)
			if err != nil || !socket.IsLocal(next.IP) {
				continue // not found now, or another machine
			}
			for _, e := range all {
				if e.Hears(next) {
					return c.Fault(h.AddrKey(i), fmt.Sprintf("%s is the gate itself, which listens on %s", hostport, e.Addr),
						"let the mail server listen on another port, and name that one")
				}
			}
		}
	}
	return nil
}
