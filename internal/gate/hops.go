package gate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
)

// openHop is a next hop in use, and what it was made from.
type openHop struct {
	config    config.NextHop
	target    nexthop.Target
	listeners []int // their indexes in the configuration
}

// nextHops are the next hops of all listeners, each once.
type nextHops []openHop

// prepareHops opens the next hops of a configuration (see part). It keeps those that are configured as
// before, with their connections and what they have learned.
func (g *gate) prepareHops(ctx context.Context, was, c *config.Config) (change, error) {
	var all nextHops
	var err error
	for _, h := range c.Hops() {
		target := g.hops.of(h.NextHop)
		if target == nil {
			if target, err = setup.NewNextHop(c, h.NextHop, g.log, g.metrics, g.edges.Edges); err != nil {
				break
			}
			g.metrics.addNextHop(target)
		}
		all = append(all, openHop{h.NextHop, target, h.Listeners})
	}
	ch := replacement(g.hops.targets(), all.targets(), func() {
		g.hops = all
		g.openMemory(c)
	})
	if err == nil && was != nil {
		err = g.checkReloaded(ctx, c, all)
	}
	if err != nil {
		err = errors.Join(err, ch.discard())
	}
	return ch, err
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

// targets returns the next hops themselves.
func (all nextHops) targets() (targets []nexthop.Target) {
	for _, h := range all {
		targets = append(targets, h.target)
	}
	return targets
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

// loginProblems says which listeners take no mail since they require a login, and their next hop,
// which answers, lets nobody log in.
func loginProblems(c *config.Config, hops nextHops) []string {
	var problems []string
	for _, l := range c.Listeners {
		target := hops.of(c.HopOf(l))
		if l.Auth != config.AuthRequire || target == nil || target.Extensions().Has("AUTH") ||
			!slices.ContainsFunc(nexthop.States(target), func(s nexthop.State) bool { return s.Known && s.Up }) {
			continue
		}
		problems = append(problems, fmt.Sprintf("no mail can pass at the listener %s: it requires a login, and the next hop %s does not offer AUTH to the gate "+
			"(Postfix: smtpd_sasl_auth_enable = yes; with smtpd_tls_auth_only = yes the gate needs next_hop.tls too)", l.Name, target))
	}
	return problems
}

// memoryName is the file in the state directory that records which recipients have which
// message.
const memoryName = "lmtp.partial"

// openMemory opens the record of delivered recipients if a next hop speaks LMTP. The record
// stays open if a reload brings another next hop, since clients may still retry.
func (g *gate) openMemory(c *config.Config) {
	lmtp := slices.ContainsFunc(c.Hops(), func(h config.Hop) bool { return h.LMTP() })
	if g.memory == nil && lmtp {
		g.memory = partial.Open(filepath.Join(c.State.Dir, memoryName), partial.Options{Logger: g.log})
	}
}

func (g *gate) closeMemory() error {
	if g.memory != nil {
		g.memory.Close()
	}
	return nil
}

// memoryOf returns the record for a next hop. Next hops with other servers than [next_hop]
// have entries of their own: a recipient who has a message there does not have it here.
func memoryOf(all *partial.Store, c *config.Config, n config.NextHop) smtpfilter.Memory {
	if slices.Equal(n.Addr, c.NextHop.Addr) {
		return all
	}
	return hopMemory{all, strings.Join(n.Addr, " ") + "\n"}
}

// hopMemory is the part of a record that belongs to one next hop. Its reverse-paths begin
// with the next hop's addresses, which no reverse-path can contain.
type hopMemory struct {
	all *partial.Store
	hop string
}

// Recall implements smtpfilter.Memory.
func (m hopMemory) Recall(from, to string) []partial.Entry { return m.all.Recall(m.hop+from, to) }

// Turn implements smtpfilter.Memory.
func (m hopMemory) Turn(from, to string) bool { return m.all.Turn(m.hop+from, to) }

// Knows implements smtpfilter.Memory.
func (m hopMemory) Knows(sum partial.Sum) bool { return m.all.Knows(sum) }

// Settle implements smtpfilter.Memory.
func (m hopMemory) Settle(from string, sum partial.Sum, outcomes []partial.Outcome) error {
	return m.all.Settle(m.hop+from, sum, outcomes)
}
