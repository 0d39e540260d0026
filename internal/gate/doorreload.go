package gate

import (
	"slices"

	"spamgate/internal/config"
)

// keepDoors makes a configuration have the doors that are open, in their order, and logs which
// changes that leaves out. A door is found by its address, which a reload does not change. One
// that is not configured any more goes on with its old settings.
func (g *gate) keepDoors(c *config.Config) {
	g.logDoorChanges(c.Doors())
	c.PolicyServices = keepTables(c, g.config.PolicyServices, c.PolicyServices,
		func(p *config.PolicyService) doorKeys { return doorKeys{&p.Name, &p.Addr, &p.Lists} })
	c.Milters = keepTables(c, g.config.Milters, c.Milters,
		func(m *config.Milter) doorKeys { return doorKeys{&m.Name, &m.Addr, &m.Lists} })
	c.DNSServers = keepTables(c, g.config.DNSServers, c.DNSServers,
		func(s *config.DNSServer) doorKeys { return doorKeys{&s.Name, &s.Addr, &s.Lists} })
}

// doorKeys are the keys of a door's table that matter to keepTables.
type doorKeys struct {
	name, addr *string
	lists      *[]string
}

// keepTables returns the tables of one kind of doors: for each open door the new one of its
// address, or else the old one. If several have the same address, with port 0, their order
// counts.
func keepTables[T any](c *config.Config, open, now []T, keys func(*T) doorKeys) []T {
	left := slices.Clone(now)
	var kept []T
	for _, table := range open {
		was := keys(&table)
		i := slices.IndexFunc(left, func(t T) bool { return *keys(&t).addr == *was.addr })
		if i < 0 {
			// Without any of its lists it asks none, and not all.
			if known := knownLists(c, *was.lists); known != nil {
				*was.lists = known
			}
		} else {
			name := *was.name
			table = left[i]
			*was.name = name // which the log and the metrics have
			left = slices.Delete(left, i, i+1)
		}
		kept = append(kept, table)
	}
	return kept
}

// logDoorChanges logs how the wanted doors differ from the open ones in what a reload does not
// change.
func (g *gate) logDoorChanges(wanted []config.Door) {
	left := g.config.Doors()
	for _, d := range wanted {
		i := slices.IndexFunc(left, func(o config.Door) bool { return o.Table == d.Table && o.Addr == d.Addr })
		if i < 0 {
			g.log.Warn("a new door is not open yet: this needs a restart, or SIGUSR2",
				"door", protocolOf(d), "listener", d.Name, "addr", d.Addr)
			continue
		}
		if left[i].Name != d.Name {
			g.log.Warn("this change needs a restart, or SIGUSR2", "key", d.Table+".name", "listener", left[i].Name)
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, d := range left {
		g.log.Warn("a door that is not configured any more stays open: closing it needs a restart, or SIGUSR2",
			"door", protocolOf(d), "listener", d.Name, "addr", d.Addr)
	}
}

// changeDoors makes the doors use a configuration that has passed keepDoors. Those that are not
// open yet find it when they open.
func (g *gate) changeDoors(c *config.Config) {
	for i, now := range c.Doors() {
		d := g.doors[i]
		d.config = now
		if d.server == nil {
			continue
		}
		if err := d.server.apply(c, now); err != nil {
			g.log.Error("the door keeps its old settings", "door", protocolOf(now), "listener", now.Name, "error", err)
		}
	}
}
