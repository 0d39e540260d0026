package gate

import (
	"context"
	"fmt"
	"slices"

	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// reload reads the configuration and the lists again. If anything is wrong, nothing changes.
func (g *gate) reload(ctx context.Context, file string) {
	c, err := config.Load(file)
	if err == nil {
		err = setup.CheckFiles(c)
	}
	if err == nil {
		err = setup.CheckLoop(c, g.listeners.sockets())
	}
	if err == nil {
		g.keep(c)
		err = g.apply(ctx, c)
	}
	if err != nil {
		g.log.Error("reload failed, nothing has changed", "error", err)
		return
	}
	g.logLimits()
	g.hops.learnOffers(ctx)
	g.warn()
	g.logState("reloaded")
}

// keep makes a configuration have what a reload does not change.
func (g *gate) keep(c *config.Config) {
	for _, key := range restartKeys(g.config, c) {
		g.log.Warn("this change needs a restart, or SIGUSR2", "key", key)
	}
	c.Hostname, c.Log = g.config.Hostname, g.config.Log
	c.KeepState(g.config)
	g.listeners.keep(c)
	logDoorChanges(g.config.Doors, c.Doors, g.log)
	keepDoors(c, g.config)
}

// keep makes a configuration have the listeners that are open, in their order. It finds each by its
// addresses, which a reload does not change. If several have the same addresses, with port 0, their order
// counts. A listener that is no longer configured goes on with its old settings, which the
// configuration keeps; without a next hop of its own it uses the new [next_hop].
func (all listeners) keep(c *config.Config) {
	var kept []config.Listener
	left := slices.Clone(c.Listeners)
	for _, e := range all {
		listener := e.config
		if i := slices.IndexFunc(left, func(l config.Listener) bool { return slices.Equal(l.Addr, e.config.Addr) }); i >= 0 {
			listener = left[i]
			left = slices.Delete(left, i, i+1)
		} else {
			listener.Lists = knownLists(c, listener.Lists)
		}
		kept = append(kept, listener)
	}
	c.Listeners = kept
}

// knownLists returns the named lists that still exist. If none is left it returns nil, which
// means all lists: a listener must not go on without any.
func knownLists(c *config.Config, names []string) []string {
	var known []string
	for _, l := range c.Lists {
		if slices.Contains(names, l.Name) {
			known = append(known, l.Name)
		}
	}
	return known
}

// restartKeys returns the changed keys that take effect only at a restart.
func restartKeys(old, c *config.Config) []string {
	addrs := func(c *config.Config) string {
		var all []string
		for _, l := range c.Listeners {
			all = append(all, fmt.Sprint(l.Addr))
		}
		slices.Sort(all)
		return fmt.Sprint(all)
	}
	var keys []string
	for _, k := range []struct {
		key  string
		same bool
	}{
		{"hostname", old.Hostname == c.Hostname},
		{"listen.addr", addrs(old) == addrs(c)},
		{"log", old.Log == c.Log},
		{"console.socket_group", old.Console.SocketGroup == c.Console.SocketGroup || old.Console.Addr != c.Console.Addr},
		{"state.dir", old.State.Dir == c.State.Dir},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	return keys
}
