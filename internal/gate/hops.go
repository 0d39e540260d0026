package gate

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/smtpfilter/nexthop"
)

// openHop is a next hop in use, and what it was made from.
type openHop struct {
	config    config.NextHop
	target    nexthop.Target
	listeners []int // their indexes in the configuration
}

// nextHops are the next hops of all listeners, each once.
type nextHops []openHop

// openHops opens the next hops of a configuration. It keeps those of old that are
// configured as before, with their connections and what they have learned.
func openHops(c *config.Config, old nextHops, log *slog.Logger, m *metrics) (nextHops, error) {
	var all nextHops
	for _, h := range c.Hops() {
		target := old.of(h.NextHop)
		if target == nil {
			var err error
			if target, err = setup.NewNextHop(c, h.NextHop, log, m); err != nil {
				return nil, errors.Join(err, all.discard(old))
			}
			m.addNextHop(target)
		}
		all = append(all, openHop{h.NextHop, target, h.Listeners})
	}
	return all, nil
}

// of returns the next hop that was made from a configuration, or nil.
func (all nextHops) of(n config.NextHop) nexthop.Target {
	for _, h := range all {
		if reflect.DeepEqual(h.config, n) {
			return h.target
		}
	}
	return nil
}

// discard closes the next hops that kept does not have.
func (all nextHops) discard(kept nextHops) error {
	var errs []error
	for _, h := range all {
		if !slices.ContainsFunc(kept, func(k openHop) bool { return k.target == h.target }) {
			errs = append(errs, h.target.Close())
		}
	}
	return errors.Join(errs...)
}

// String returns the names of the next hops for the log.
func (all nextHops) String() string {
	var names []string
	for _, h := range all {
		names = append(names, h.target.String())
	}
	return strings.Join(names, " ")
}

// learnOffers waits up to two seconds to learn what the next hops offer, so that the gate
// offers it to the first clients, too.
func (all nextHops) learnOffers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, h := range all {
		for _, server := range setup.MailServers(h.target) {
			wg.Go(func() { server.WaitKnown(ctx) })
		}
	}
	wg.Wait()
}

// status returns the state of each server. If there are several next hops, it says which
// listeners' mail goes there.
func (all nextHops) status(c *config.Config) []admin.NextHop {
	var status []admin.NextHop
	for _, h := range all {
		var names []string
		for _, i := range h.listeners {
			if len(all) > 1 && i < len(c.Listeners) {
				names = append(names, c.Listeners[i].Name)
			}
		}
		for _, state := range nexthop.States(h.target) {
			hop := admin.NextHop{Address: state.Target, Listeners: names, Recipients: state.Recipients, RecipientsRefused: state.RecipientsRefused}
			if state.Known {
				hop.Up = &state.Up
			}
			status = append(status, hop)
		}
	}
	return status
}
