package gate

import (
	"slices"

	"spamgate/internal/config"
)

// keepDoors makes a configuration have the doors that are open, in their order, and logs which
// changes that leaves out. A door is found by its address, which a reload does not change. One
// that is not configured any more goes on with its old settings.
func (g *gate) keepDoors(c *config.Config) {
	g.logDoorChanges(c.Doors)
	left := slices.Clone(c.Doors)
	var kept []config.Door
	for _, d := range g.config.Doors {
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

// logDoorChanges logs how the wanted doors differ from the open ones in what a reload does not
// change.
func (g *gate) logDoorChanges(wanted []config.Door) {
	left := slices.Clone(g.config.Doors)
	for _, d := range wanted {
		i := indexOfDoor(left, d)
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
	for i, now := range c.Doors {
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
