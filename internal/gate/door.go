package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"

	"spamgate/internal/admin"
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

// doors are all doors, in the order of the configuration.
type doors []*runningDoor

// prepareDoors resolves the addresses of doors at the start (see part), and opens nothing.
func (g *gate) prepareDoors(_ context.Context, was, c *config.Config) (change, error) {
	if was != nil {
		return change{commit: func() { g.changeDoors(c) }}, nil
	}
	var all doors
	for _, d := range c.Doors {
		addr, err := socket.ResolveDoor(c, d, g.in)
		if err != nil {
			return change{}, err
		}
		all = append(all, &runningDoor{config: d, addr: addr})
	}
	return change{commit: func() { g.doors = all }}, nil
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
		if server, ok := d.server.(dnsServer); ok && g.in != nil {
			if err := server.WaitIndexed(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sockets returns the sockets of the open doors.
func (all doors) sockets() (open []*socket.OpenDoor) {
	for _, d := range all {
		open = append(open, d.open)
	}
	return open
}

// addresses returns the addresses of the open doors.
func (all doors) addresses() (addrs []admin.Door) {
	for _, d := range all {
		addrs = append(addrs, admin.Door{Door: protocolOf(d.config), Name: d.config.Name, Address: d.open.Addr()})
	}
	return addrs
}

// held returns the sockets for a successor.
func (all doors) held() (held []socket.Inheritable) {
	for _, d := range all {
		held = append(held, d.open.Inheritable()...)
	}
	return held
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

// own makes this process the owner of the sockets' files that it has inherited.
func (all doors) own(log *slog.Logger) {
	for _, d := range all {
		if d.open == nil {
			continue
		}
		if !d.open.InPlace() {
			log.Warn("the file of the socket is gone, so that nobody can reach it: SIGUSR2 or a restart makes it again",
				"door", protocolOf(d.config), "listener", d.config.Name, "addr", d.open.Addr())
			continue
		}
		if err := d.open.Own(d.config.Mode()); err != nil {
			log.Warn("the socket keeps its mode", "door", protocolOf(d.config), "listener", d.config.Name, "error", err)
		}
	}
}

// release leaves the doors to a successor: it closes their listening sockets here, while
// the present connections go on. Questions over UDP are answered by both processes until this
// one shuts down, each by the one that reads it.
func (all doors) release() error {
	var errs []error
	for _, d := range all {
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

// close closes what is still open of the doors, without waiting.
func (all doors) close() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var errs []error
	for _, d := range all {
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

// keepDoors makes a configuration have the doors that are open, in their order. A door is found by
// its address, which a reload does not change. One that is not configured any more goes on with its
// old settings.
func keepDoors(c, open *config.Config) {
	left := slices.Clone(c.Doors)
	var kept []config.Door
	for _, d := range open.Doors {
		i := indexOfDoor(left, d)
		if i < 0 {
			// Without any of its lists it asks none, and not all.
			if known := knownLists(c, d.Lists); known != nil {
				d.Lists = known
			}
		} else {
			name := d.Name
			d = left[i]
			d.Name = name // which the log and the metrics have
			left = slices.Delete(left, i, i+1)
		}
		kept = append(kept, d)
	}
	c.Doors = kept
}

// indexOfDoor returns the index of the door of the same kind and address, or -1. If several
// have the same address, with port 0, their order counts.
func indexOfDoor(all []config.Door, d config.Door) int {
	return slices.IndexFunc(all, func(o config.Door) bool { return o.Table == d.Table && o.Addr == d.Addr })
}

// logDoorChanges logs how the wanted doors differ from the open ones in what a reload does not change.
func logDoorChanges(open, wanted []config.Door, log *slog.Logger) {
	left := slices.Clone(open)
	for _, d := range wanted {
		i := indexOfDoor(left, d)
		if i < 0 {
			log.Warn("a new door is not open yet: this needs a restart, or SIGUSR2",
				"door", protocolOf(d), "listener", d.Name, "addr", d.Addr)
			continue
		}
		if left[i].Name != d.Name {
			log.Warn("this change needs a restart, or SIGUSR2", "key", d.Table+".name", "listener", left[i].Name)
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, d := range left {
		log.Warn("a door that is not configured any more stays open: closing it needs a restart, or SIGUSR2",
			"door", protocolOf(d), "listener", d.Name, "addr", d.Addr)
	}
}

// changeDoors makes the doors use a configuration that has passed keepDoors. Those that are not
// open yet find it when they open.
func (g *gate) changeDoors(c *config.Config) {
	for i, door := range c.Doors {
		d := g.doors[i]
		d.config = door
		if d.server == nil {
			continue
		}
		if err := d.server.apply(c, door); err != nil {
			g.log.Error("the door keeps its old settings", "door", protocolOf(door), "listener", door.Name, "error", err)
		}
	}
}
