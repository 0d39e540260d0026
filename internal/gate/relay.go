package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/smtpfilter/nexthop"
)

// checkPublic refuses to open a gate that would relay mail for the world, or let the world
// fill a Maildir. Without recipient_domains the next hop of a public listener must refuse
// foreign recipients. It sees only the gate's address and may not, so checkPublic asks it.
// Without a clear answer checkPublic asks again until ctx ends; waiting is the log text that
// says what that delays.
func checkPublic(ctx context.Context, c *config.Config, all listeners, hops nextHops, waiting string, log *slog.Logger) error {
	for _, h := range hops {
		var sockets []socket.BindAddr
		for _, i := range h.listeners {
			sockets = append(sockets, all[i].sockets...)
		}
		public, ok := socket.FirstPublic(sockets)
		if !ok {
			continue
		}
		if _, maildir := h.config.Maildir(); maildir && !h.config.AllowPublic {
			return fmt.Errorf("not safe beyond this machine: %s would let other machines deliver into %s; set listen.addr to 127.0.0.1, or next_hop.allow_public = true",
				public.Addr, h.config.Addr[0])
		}
		if len(c.Policy.RecipientDomains) > 0 {
			continue
		}
		for _, server := range setup.MailServers(h.target) {
			if err := checkRelay(ctx, server, public, waiting, log); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkReloaded is checkPublic for a reload. A next hop that does not answer must not block
// the gate. Without recipient_domains, a new next hop must say first that it does not relay.
// The others have said so before, and may be down now.
func (g *gate) checkReloaded(ctx context.Context, c *config.Config, hops nextHops) error {
	asked := len(g.config.Policy.RecipientDomains) == 0
	var known, others nextHops
	for _, h := range hops {
		if before := g.hops.of(h.config); asked && before != nil && g.listeners.wasPublic(g.hops, before) {
			known = append(known, h)
		} else {
			others = append(others, h)
		}
	}
	checking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := checkPublic(checking, c, g.listeners, others, waitingToReload, g.log); err != nil {
		return err
	}
	for _, h := range known { // no answer now is no error
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := checkPublic(asking, c, g.listeners, nextHops{h}, waitingToReload, g.log)
		cancel()
		if err != nil && (!errors.Is(err, errRelayUnknown) || ctx.Err() != nil) {
			return err
		}
	}
	return nil
}

// wasPublic reports whether a public listener has used a next hop until now.
func (all listeners) wasPublic(hops nextHops, target nexthop.Target) bool {
	for _, h := range hops {
		for _, i := range h.listeners {
			if _, public := socket.FirstPublic(all[i].sockets); public && h.target == target {
				return true
			}
		}
	}
	return false
}

// errRelayUnknown says that the next hop has not answered whether it relays.
var errRelayUnknown = errors.New("it is not known whether the next hop relays")

// What waits for the answer of the next hop.
const (
	waitingToOpen   = "not listening yet"
	waitingToReload = "not reloaded yet"
)

// checkRelay asks one server until it has an answer.
func checkRelay(ctx context.Context, server *nexthop.SMTP, public socket.BindAddr, waiting string, log *slog.Logger) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		relays, reply, err := server.CheckRelay(ctx)
		switch {
		case err == nil && relays:
			return fmt.Errorf("not safe beyond this machine: the next hop %s relays for the gate (RCPT TO:<relay-test@example.net> was answered with %q), so everyone who can reach %s could send mail anywhere through it; set policy.recipient_domains to your domains, take the gate's address out of what the next hop trusts (in Postfix: mynetworks), or let it know the clients (next_hop.identity = \"xclient\", next_hop.proxy)",
				server, reply.String(), public.Addr)
		case err == nil:
			log.Info("the next hop does not relay for the gate", "next_hop", server.String(), "reply", reply.String())
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w; %w", errRelayUnknown, ctx.Err(), err)
		}
		hint := "; policy.recipient_domains would make that unimportant"
		if errors.Is(err, nexthop.ErrNoXCLIENT) {
			hint = "" // there would be no mail all the same
		}
		log.Warn(waiting+": it is not known whether the next hop relays"+hint,
			"next_hop", server.String(), "retry_in", wait, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; %w", errRelayUnknown, ctx.Err(), err)
		}
	}
}
