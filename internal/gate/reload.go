package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
)

// maxReloadFetch is how long a reload waits for lists that are new to the gate.
const maxReloadFetch = 30 * time.Second

// reload reads configuration and lists again. Whatever is wrong, nothing
// changes then.
func (g *gate) reload(ctx context.Context, file string) {
	c, err := config.Load(file)
	if err == nil {
		err = setup.CheckFiles(c)
	}
	if err == nil {
		err = g.apply(ctx, c)
	}
	if err != nil {
		g.log.Error("reload failed, nothing has changed", "error", err)
		return
	}
	g.logWarnings(g.config)
	g.logState("reloaded")
}

// apply changes the running gate to a configuration.
func (g *gate) apply(ctx context.Context, c *config.Config) (err error) {
	for _, key := range restartKeys(g.config, c) {
		g.log.Warn("this change needs a restart, or SIGUSR2", "key", key)
	}
	c.Hostname, c.Log, c.State.Dir = g.config.Hostname, g.config.Log, g.config.State.Dir
	changes := g.entranceChanges(c)
	next := g.next
	end := g.adminEnd()
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, end.discard(g.adminEnd()))
		g.keepSocket()
		if next != g.next {
			err = errors.Join(err, next.Close())
		}
		for _, ch := range changes {
			err = errors.Join(err, ch.discard())
		}
	}()
	for i := range changes {
		if err := changes[i].openCertificate(g.log); err != nil {
			return err
		}
	}
	lists, err := setup.BlocklistConfig(c, g.log)
	if err != nil {
		return err
	}
	sources, err := setup.FetchSources(c.Lists)
	if err != nil {
		return err
	}
	sockets := allSockets(g.entrances)
	if err := setup.CheckLoop(c, sockets); err != nil {
		return err
	}
	if !reflect.DeepEqual(c.NextHop, g.config.NextHop) {
		if next, err = setup.NewNextHop(c, g.log); err != nil {
			next = g.next
			return err
		}
	}
	// A next hop that does not answer now must not hold the gate up; that it
	// relays must be known before it is used without recipient_domains.
	// The one in use was asked before, and need not be there now.
	asked := next == g.next && len(g.config.Policy.RecipientDomains) == 0
	patience := 10 * time.Second
	if asked {
		patience = 2 * time.Second
	}
	checking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = checkPublic(checking, c, sockets, next, waitingToReload, g.log)
	if asked && errors.Is(err, errRelayUnknown) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return err
	}
	if end, err = g.openAdmin(c, g.adminEnd(), false); err != nil {
		return err
	}
	lists.OnHit = g.hits.Record
	fetching, cancel := context.WithTimeout(ctx, maxReloadFetch)
	defer cancel()
	unfetched := setup.FirstLoad(fetching, c, g.log, io.Discard)
	if err := g.store.Reload(ctx, lists); err != nil {
		return errors.Join(unfetched, setup.PlaceLists(c, err))
	}
	g.startHits(c)
	// Wait for files that are being written just now. Lists that are held are
	// logged by the store, and serve their last good version.
	_ = g.store.Rescan(ctx)
	g.change(c, changes, next)
	g.fetcher.Update(sources)
	g.replaceAdmin(end)
	return nil
}

// change carries out what apply has prepared.
func (g *gate) change(c *config.Config, changes []entranceChange, next nexthop.Target) {
	g.openMemory(c)
	auto := setup.AutoConnections(c, setup.DescriptorLimit())
	for _, ch := range changes {
		old := ch.entrance.cert
		if ch.config.TarpitMax != ch.entrance.config.TarpitMax {
			ch.entrance.tarpit = limit.NewTarpit(int(ch.config.TarpitMax))
		}
		ch.entrance.config, ch.entrance.cert = ch.config, ch.cert
		ch.entrance.limiter.SetConfig(setup.Limits(ch.config, auto))
		for _, port := range ch.entrance.ports {
			port.Apply(g.settings(c, ch.entrance, next))
		}
		if old != nil && old != ch.cert {
			if err := old.Close(); err != nil {
				g.log.Warn("closing the old certificate", "error", err)
			}
		}
	}
	if g.next != next {
		if err := g.next.Close(); err != nil {
			g.log.Warn("closing the old next hop", "error", err)
		}
	}
	g.next = next
	g.config = c
	g.logLimits()
	g.warnDescriptors()
	g.answers.now.Store(&running{c, next})
}

// entranceChange is what a reload makes of an entrance.
type entranceChange struct {
	entrance *entrance
	config   config.Listener
	cert     *certs.Reloader // the entrance's, where the files are the same
}

// entranceChanges finds the new configuration of each entrance: by the addresses,
// which stay as they are; several may have the same, with port 0, and then their
// order counts. One without gets the settings that it has, since it goes on
// serving, and so the configuration keeps it.
func (g *gate) entranceChanges(c *config.Config) []entranceChange {
	var changes []entranceChange
	var kept []config.Listener
	left := slices.Clone(c.Listeners)
	for _, e := range g.entrances {
		now := e.config
		if i := slices.IndexFunc(left, func(l config.Listener) bool { return slices.Equal(l.Addr, e.config.Addr) }); i >= 0 {
			now = left[i]
			left = slices.Delete(left, i, i+1)
		} else {
			now.Lists = knownLists(c, now.Lists)
		}
		kept = append(kept, now)
		changes = append(changes, entranceChange{entrance: e, config: now})
	}
	c.Listeners = kept
	return changes
}

// knownLists are those of names that there still are. Where none is left it is nil,
// which stands for all lists: a listener must not go on with none.
func knownLists(c *config.Config, names []string) []string {
	var known []string
	for _, l := range c.Lists {
		if slices.Contains(names, l.Name) {
			known = append(known, l.Name)
		}
	}
	return known
}

// openCertificate opens the certificate, where it is another one than before.
func (ch *entranceChange) openCertificate(log *slog.Logger) error {
	old, now := ch.entrance.config, ch.config
	if ch.entrance.cert != nil && now.TLS != "none" && old.TLSCert == now.TLSCert && old.TLSKey == now.TLSKey {
		ch.cert = ch.entrance.cert
		return nil
	}
	var err error
	ch.cert, err = setup.OpenCertificate(now, log)
	return err
}

// discard gives up a certificate that is not to be used after all.
func (ch *entranceChange) discard() error {
	if ch.cert == nil || ch.cert == ch.entrance.cert {
		return nil
	}
	return ch.cert.Close()
}

// restartKeys names the keys whose change a reload does not carry out.
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
		{"state.dir", old.State.Dir == c.State.Dir},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	return keys
}
