package nexthop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/smtpfilter/wire"
)

// assumed is what a next hop that was never heard is taken to offer.
var assumed = wire.Extensions{"8BITMIME": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": nil}

// known is what the next hop was heard to offer.
type known struct {
	offers atomic.Pointer[wire.Extensions] // what clients can have of it; nil before the first EHLO
	heard  atomic.Int64                    // when, in nanoseconds since 1970; 0 is never

	greeting atomic.Pointer[string] // the text of its last 220; nil before the first

	health health

	path atomic.Pointer[[]string] // the gates that mail passes from it on

	once  sync.Once
	asked chan struct{} // closed once the first probe is over

	mu       sync.Mutex
	own      wire.Extensions // to ourselves
	stranger wire.Extensions // to the client of the last XCLIENT or PROXY header; nil before the first
	warned   bool            // that mail must wait for XCLIENT to be offered
}

// Extensions are what the next hop offers, as the last EHLO of any connection
// has shown it, inside TLS where there is TLS.
//
// Where clients are told to it, by XCLIENT or the PROXY protocol, it may offer
// them less than it does ourselves, and login: so the keywords are those that it
// offers both ourselves and the client it was told last, but AUTH is as that
// client was offered it, and XCLIENT and XFORWARD as we were. REQUIRETLS counts
// where the next hop is verified.
func (s *SMTP) Extensions() wire.Extensions {
	if e := s.known.offers.Load(); e != nil {
		return *e
	}
	return assumed
}

// learn takes notice of what was offered on a connection. A next hop that knows
// HELO alone says nothing about that.
func (s *SMTP) learn(c *conn) {
	offers := c.offers
	if offers == nil {
		offers = assumed
	}
	if offers.Has("REQUIRETLS") && !s.verified(c) {
		offers = maps.Clone(offers)
		delete(offers, "REQUIRETLS")
	}
	k := &s.known
	k.greeted(c.greeting)
	s.checkSource(c)
	k.heard.Store(time.Now().UnixNano())
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.told || c.proxied != (endpoints{}) {
		k.stranger = offers
	} else {
		k.own = offers
		s.warnWithoutXCLIENT()
		if s.config.Proxy == 0 && !(s.tellsXCLIENT() && offers.Has("XCLIENT")) {
			k.stranger = nil
		}
	}
	now := bothOffer(k.own, k.stranger)
	before := k.offers.Load()
	if before != nil && equalOffers(*before, now) {
		return
	}
	k.offers.Store(&now)
	if before != nil {
		s.log.Info("the next hop offers something else now", "next_hop", s.String(), "before", keywords(*before), "now", keywords(now))
	}
}

// warnWithoutXCLIENT warns, once until it is offered again, that no mail can pass
// without XCLIENT. The caller holds s.known.mu.
func (s *SMTP) warnWithoutXCLIENT() {
	k := &s.known
	missing := s.mustTellXCLIENT() && !k.own.Has("XCLIENT")
	if missing && !k.warned {
		s.log.Warn("no mail can pass: the next hop does not offer XCLIENT to the gate (Postfix: smtpd_authorized_xclient_hosts)",
			"next_hop", s.String(), "offers", keywords(k.own))
	}
	k.warned = missing
}

// bothOffer is what Extensions says of the two. One of them may be nil.
func bothOffer(own, stranger wire.Extensions) wire.Extensions {
	if own == nil {
		return stranger
	}
	if stranger == nil {
		return own
	}
	both := make(wire.Extensions)
	for keyword, params := range stranger {
		if own.Has(keyword) || keyword == "AUTH" {
			both[keyword] = params
		}
	}
	for _, keyword := range []string{"XCLIENT", "XFORWARD"} {
		delete(both, keyword)
		if own.Has(keyword) {
			both[keyword] = own[keyword]
		}
	}
	return both
}

func equalOffers(a, b wire.Extensions) bool { return maps.EqualFunc(a, b, slices.Equal[[]string]) }

func keywords(e wire.Extensions) []string { return slices.Sorted(maps.Keys(e)) }

// Probe connects, to learn what the next hop offers and whether it takes mail: MAIL
// FROM:<>, then RSET. The connection is kept for a client where connections are; else
// it is ended. A failure leaves what is known of its offers as it is.
func (s *SMTP) Probe(ctx context.Context) error {
	if s.isClosed() {
		return fmt.Errorf("next hop %s: %w", s, ErrClosed)
	}
	if err := s.probe(ctx); err != nil {
		s.known.health.failed(ctx, err)
		return fmt.Errorf("next hop %s: probe: %w", s, err)
	}
	s.known.health.passes()
	return nil
}

// probe is Probe without the conclusions.
func (s *SMTP) probe(ctx context.Context) error {
	c, err := s.connect(ctx, nil)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = s.tryMail(c)
	if !stop() {
		err = context.Cause(ctx)
	}
	var refused *ReplyError
	switch {
	case err == nil:
		s.release(c, false)
	case errors.As(err, &refused) && refused.Reply.Code != codeClosing, errors.Is(err, ErrNoXCLIENT):
		s.dismiss(c)
	default:
		c.Close()
	}
	return err
}

// WaitKnown waits for the probe that every target begins with, until it is known
// what the next hop offers or that it does not say. It returns at once where
// nothing is ever probed.
func (s *SMTP) WaitKnown(ctx context.Context) {
	if s.config.ProbeInterval < 0 {
		return
	}
	select {
	case <-s.known.asked:
	case <-s.done:
	case <-ctx.Done():
	}
}

// markAsked ends WaitKnown.
func (k *known) markAsked() { k.once.Do(func() { close(k.asked) }) }

// keepProbing probes at once, and then whenever nobody has connected for
// ProbeInterval, or no MAIL was accepted in it, until Close.
func (s *SMTP) keepProbing(ctx context.Context) {
	defer s.background.Done()
	failing := false
	for since := int64(1); ; {
		if s.known.heard.Load() < since || !s.known.health.passedSince(since) {
			err := s.Probe(ctx)
			if ctx.Err() != nil {
				return
			}
			s.logProbe(err, failing)
			failing = err != nil
		}
		s.known.markAsked()
		since = time.Now().UnixNano()
		tenth := s.config.ProbeInterval / 10
		timer := time.NewTimer(s.config.ProbeInterval - tenth + rand.N(2*tenth+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// logProbe warns of the first failure, and tells when it is over.
func (s *SMTP) logProbe(err error, failing bool) {
	level, text := slog.LevelDebug, "next hop probed"
	switch {
	case errors.Is(err, ErrNoXCLIENT):
		text = "next hop still does not offer XCLIENT" // warnWithoutXCLIENT has said it
	case err != nil && failing:
		text = "next hop still cannot be probed"
	case errors.Is(err, errNoMail):
		level, text = slog.LevelWarn, "next hop takes no mail"
	case err != nil:
		level, text = slog.LevelWarn, "next hop cannot be probed: clients are offered what it was last heard to offer"
		if s.known.heard.Load() == 0 {
			text = "next hop cannot be probed: clients are offered what it is assumed to offer"
		}
	case failing:
		level, text = slog.LevelInfo, "next hop can be probed again, and takes mail"
	}
	s.log.Log(context.Background(), level, text, "next_hop", s.String(), "error", err, "offers", keywords(s.Extensions()))
}
