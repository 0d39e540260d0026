package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/managed"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
	"spamgate/smtpfilter/limit"
)

// maxReloadFetch bounds the time for which a reload waits for the first fetch of new lists.
const maxReloadFetch = 30 * time.Second

// reload reads the configuration and the lists again. If anything is wrong, nothing changes.
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
	g.hops.learnOffers(ctx)
	g.warnLogins()
	g.logState("reloaded")
}

// apply makes the running gate use a configuration.
func (g *gate) apply(ctx context.Context, c *config.Config) (err error) {
	for _, key := range restartKeys(g.config, c) {
		g.log.Warn("this change needs a restart, or SIGUSR2", "key", key)
	}
	c.Hostname, c.Log = g.config.Hostname, g.config.Log
	c.KeepState(g.config)
	if err := setup.CheckLoop(c, allSockets(g.listeners)); err != nil {
		return err
	}
	changes := g.listenerChanges(c)
	g.keepDoors(c)
	hops, files := g.hops, g.recipients
	end, consoleCerts, publishCerts := g.adminServers(), g.consoleCerts, g.publishCerts
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, end.discard(g.adminServers()), closeOther(consoleCerts, g.consoleCerts), closeOther(publishCerts, g.publishCerts))
		g.keepSocket()
		err = errors.Join(err, hops.discard(g.hops), closeRecipients(files, g.recipients))
		for _, ch := range changes {
			err = errors.Join(err, ch.discard())
		}
	}()
	for i := range changes {
		if err := changes[i].openCertificates(g.log); err != nil {
			return err
		}
	}
	if consoleCerts, err = g.consoleCertificates(c); err != nil {
		return err
	}
	if publishCerts, err = g.publishCertificates(c); err != nil {
		return err
	}
	publishing, err := setup.OpenPublish(c)
	if err != nil {
		return err
	}
	lists, err := setup.BlocklistConfig(c, g.log)
	if err != nil {
		return err
	}
	sources, err := setup.FetchSources(c.Lists)
	if err != nil {
		return err
	}
	if files, err = openRecipients(c, g.recipients, g.log); err != nil {
		return err
	}
	if hops, err = openHops(c, g.hops, g.log, g.metrics); err != nil {
		return err
	}
	if err := g.checkReloaded(ctx, c, hops); err != nil {
		return err
	}
	if end, err = g.openAdmin(c, g.adminServers(), false); err != nil {
		return err
	}
	lists.OnHit = g.hits.Record
	fetching, cancel := context.WithTimeout(ctx, maxReloadFetch)
	defer cancel()
	unfetched := setup.FirstLoad(fetching, c, g.log, io.Discard)
	if err := setup.ApplyDNS(g.dns, c); err != nil { // before the Store has lists that it does not know
		return err
	}
	if err := managed.Make(c); err != nil {
		return errors.Join(err, setup.ApplyDNS(g.dns, g.config))
	}
	if err := g.store.Reload(ctx, lists); err != nil {
		return errors.Join(unfetched, setup.PlaceLists(c, err), setup.ApplyDNS(g.dns, g.config))
	}
	g.startHits(c)
	// Wait for files that are being written. The store logs lists that are held, and serves
	// their last good version.
	_ = g.store.Rescan(ctx)
	lookAtRecipients(ctx, files)
	g.changeCertificates(&g.consoleCerts, consoleCerts)
	g.changeCertificates(&g.publishCerts, publishCerts)
	g.publisher.configure(c, publishing)
	g.change(c, changes, hops, files)
	g.fleet.configure(c)
	g.fleet.setSources(sources)
	g.replaceAdmin(end)
	return nil
}

// change installs what apply has prepared.
func (g *gate) change(c *config.Config, changes []listenerChange, hops nextHops, files []*recipients.File) {
	g.openMemory(c)
	before := g.recipients
	g.recipients = files
	if err := setup.ApplyProofs(g.proofs, c); err != nil {
		g.log.Error("proofs keep their old DNS servers", "error", err)
	}
	auto := setup.AutoConnections(c, setup.DescriptorLimit())
	for _, ch := range changes {
		old := ch.listener.certs
		if ch.config.TarpitMax != ch.listener.config.TarpitMax {
			ch.listener.tarpit = limit.NewTarpit(int(ch.config.TarpitMax))
		}
		ch.listener.config, ch.listener.certs = ch.config, ch.certs
		ch.listener.limiter.SetConfig(setup.Limits(ch.config, auto))
		for _, port := range ch.listener.ports {
			if _, err := port.Apply(g.settings(c, ch.listener, hops)); err != nil {
				g.log.Error("the listener keeps its old settings", "listener", ch.config.Name, "error", err)
			}
		}
		if old != nil && old != ch.certs {
			if err := old.Close(); err != nil {
				g.log.Warn("closing the old certificates", "error", err)
			}
		}
	}
	g.changeDoors(c)
	if err := g.hops.discard(hops); err != nil {
		g.log.Warn("closing the old next hop", "error", err)
	}
	g.hops = hops
	if err := closeRecipients(before, files); err != nil {
		g.log.Warn("closing the old files with recipients", "error", err)
	}
	g.history.configure(c.Decisions)
	g.config = c
	g.logLimits()
	g.warnDescriptors()
	g.answers.now.Store(&activeConfig{c, hops, g.certificates(), files})
}

// listenerChange is the change of a listener by a reload.
type listenerChange struct {
	listener *runningListener
	config   config.Listener
	certs    *certs.Reloader // the present one if the files are the same
}

// listenerChanges finds the new configuration of each listener by its addresses, which a
// reload does not change. If several have the same addresses, with port 0, their order
// counts. A listener that is no longer configured goes on with its old settings, which the
// configuration keeps; without a next hop of its own it uses the new [next_hop].
func (g *gate) listenerChanges(c *config.Config) []listenerChange {
	var changes []listenerChange
	var kept []config.Listener
	left := slices.Clone(c.Listeners)
	for _, e := range g.listeners {
		now := e.config
		if i := slices.IndexFunc(left, func(l config.Listener) bool { return slices.Equal(l.Addr, e.config.Addr) }); i >= 0 {
			now = left[i]
			left = slices.Delete(left, i, i+1)
		} else {
			now.Lists = knownLists(c, now.Lists)
		}
		kept = append(kept, now)
		changes = append(changes, listenerChange{listener: e, config: now})
	}
	c.Listeners = kept
	return changes
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

// openCertificates opens the certificates if their files are not the present ones.
func (ch *listenerChange) openCertificates(log *slog.Logger) error {
	old, now := ch.listener.config, ch.config
	if ch.listener.certs != nil && now.TLS != "none" && slices.Equal(old.TLSCert, now.TLSCert) && slices.Equal(old.TLSKey, now.TLSKey) {
		ch.certs = ch.listener.certs
		return nil
	}
	var err error
	ch.certs, err = setup.OpenCertificates(now, log)
	return err
}

// discard closes certificates that are not used after all.
func (ch *listenerChange) discard() error {
	if ch.certs == nil || ch.certs == ch.listener.certs {
		return nil
	}
	return ch.certs.Close()
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
