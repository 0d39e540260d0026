package gate

import (
	"context"
	"errors"
	"net"
	"sync"

	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
)

// doorServer serves a door. Its methods are those of smtpfilter.Server: Serve returns nil once
// the listener is closed, or after Shutdown, which lets messages end, and closes all connections
// when the context ends.
type doorServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error

	// apply changes what a reload may change.
	apply(*config.Config, config.Door) error
}

// packetServer is a doorServer that is asked over UDP, too.
type packetServer interface {
	ServePacket(net.PacketConn) error
}

// runningDoor is a configured door in use.
type runningDoor struct {
	config config.Door
	addr   socket.DoorAddr
	open   *socket.OpenDoor // nil until it is open
	server doorServer       // nil until makeDoors
}

// newDoors resolves the addresses of the configured doors. It opens nothing.
func newDoors(c *config.Config, in *socket.Inherited) ([]*runningDoor, error) {
	var all []*runningDoor
	for _, d := range c.Doors {
		addr, err := socket.ResolveDoor(c, d, in)
		if err != nil {
			return nil, err
		}
		all = append(all, &runningDoor{config: d, addr: addr})
	}
	return all, nil
}

// makeDoors makes the servers of all doors. The predecessor answers until they can.
func (g *gate) makeDoors(ctx context.Context) (err error) {
	for _, d := range g.doors {
		if d.server != nil {
			continue // an earlier attempt was interrupted by a reload
		}
		if d.server, err = g.newDoorServer(g.config, d.config); err != nil {
			return g.config.Fault(d.config.Path(), err.Error(), "")
		}
	}
	for _, d := range g.doors {
		if server, ok := d.server.(dnsServer); ok && g.takesOver {
			if err := server.WaitIndexed(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// doorSockets returns the sockets of the open doors.
func (g *gate) doorSockets() []*socket.OpenDoor {
	var all []*socket.OpenDoor
	for _, d := range g.doors {
		all = append(all, d.open)
	}
	return all
}

// openSockets opens the sockets of a door.
func (d *runningDoor) openSockets(c *config.Config) error {
	open, err := d.addr.Open()
	if err != nil {
		return setup.ListenFault(c, d.addr.Of, err)
	}
	d.open = open
	return nil
}

// serveDoor answers the questions at a door.
func (g *gate) serveDoor(d *runningDoor) {
	go g.serve(func() error { return d.server.Serve(d.open.Listener) })
	if server, ok := d.server.(packetServer); ok && d.open.Packets != nil {
		go g.serve(func() error { return server.ServePacket(d.open.Packets) })
	}
}

// ownDoors makes this process the owner of the sockets' files that it has inherited.
func (g *gate) ownDoors() {
	for _, d := range g.doors {
		if d.open == nil {
			continue
		}
		if !d.open.InPlace() {
			g.log.Warn("the file of the socket is gone, so that nobody can reach it: SIGUSR2 or a restart makes it again",
				"door", protocolOf(d.config), "listener", d.config.Name, "addr", d.open.Addr())
			continue
		}
		if err := d.open.Own(d.config.Mode()); err != nil {
			g.log.Warn("the socket keeps its mode", "door", protocolOf(d.config), "listener", d.config.Name, "error", err)
		}
	}
}

// releaseDoors leaves the doors to a successor: it closes their listening sockets here, while
// the present connections go on. Questions over UDP are answered by both processes until this
// one shuts down, each by the one that reads it.
func (g *gate) releaseDoors() error {
	var errs []error
	for _, d := range g.doors {
		d.open.Share()
		errs = append(errs, d.open.Listener.Close())
	}
	return errors.Join(errs...)
}

// drain ends all connections, those of the doors too. DNS is answered to the end: the mail
// servers at the other doors may ask it.
func (g *gate) drain(ctx context.Context) error {
	errs := make([]error, 1+len(g.doors))
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = g.server.Shutdown(ctx) })
	for i, d := range g.doors {
		if d.server != nil && d.config.Table != config.TableDNSServer {
			wg.Go(func() { errs[i+1] = d.server.Shutdown(ctx) })
		}
	}
	wg.Wait()
	for i, d := range g.doors {
		if d.server != nil && d.config.Table == config.TableDNSServer {
			errs[i+1] = d.server.Shutdown(ctx)
		}
	}
	return errors.Join(errs...)
}

// closeDoors closes what is still open of the doors, without waiting.
func (g *gate) closeDoors() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var errs []error
	for _, d := range g.doors {
		if d.server != nil {
			if err := d.server.Shutdown(ended); !errors.Is(err, context.Canceled) {
				errs = append(errs, err)
			}
		}
		if d.open != nil {
			if err := d.open.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
