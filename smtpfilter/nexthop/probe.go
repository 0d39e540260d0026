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

// defaultOffers are the assumed offers of a next hop before its first EHLO reply.
var defaultOffers = wire.Extensions{"8BITMIME": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": nil}

// known holds what the next hop's replies have shown.
type known struct {
	offers   atomic.Pointer[wire.Extensions] // to clients; nil before the first EHLO
	heard    atomic.Int64                    // when, in ns since 1970; 0 is never
	greeting atomic.Pointer[string]          // the text of the last 220; nil before the first
	health   health
	path     atomic.Pointer[[]string] // the gates that mail passes after it

	once   sync.Once
	probed chan struct{} // closed after the first probe

	mu       sync.Mutex
	own      wire.Extensions // offered to ourselves
	stranger wire.Extensions // offered to the client of the last XCLIENT or PROXY header; nil before the first
	warned   bool            // that mail must wait for XCLIENT to be offered
}

// Extensions returns what the next hop offered in the last EHLO of any connection,
// inside TLS if there is TLS.
//
// To a client that XCLIENT or the PROXY protocol names, the next hop may offer less
// than to ourselves, and AUTH. So the keywords are those that it offers both to us
// and to the last such client, but AUTH is as offered to that client, and XCLIENT
// and XFORWARD as offered to us. REQUIRETLS counts only if the next hop is verified.
func (s *server) Extensions() wire.Extensions {
	if e := s.known.offers.Load(); e != nil {
		return *e
	}
	return defaultOffers
}

// learn notes what was offered on a connection. HELO offers nothing, so the
// defaults are assumed.
func (s *server) learn(c *conn) {
	offers := c.offers
	if offers == nil {
		offers = defaultOffers
	}
	if offers.Has("REQUIRETLS") && !s.verified(c) {
		offers = maps.Clone(offers)
		delete(offers, "REQUIRETLS")
	}
	k := &s.known
	if text, before := c.greetingText(), k.greeting.Load(); before == nil || *before != text {
		k.greeting.Store(&text)
	}
	s.checkSource(c)
	k.heard.Store(time.Now().UnixNano())
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.xclientSent || c.proxied != (endpoints{}) {
		k.stranger = offers
	} else {
		k.own = offers
		s.warnWithoutXCLIENT()
		if s.config.Proxy == 0 && !(s.usesXCLIENT() && offers.Has("XCLIENT")) {
			k.stranger = nil
		}
	}
	extensions := bothOffer(k.own, k.stranger)
	before := k.offers.Load()
	if before != nil && equalOffers(*before, extensions) {
		return
	}
	k.offers.Store(&extensions)
	if before != nil {
		s.log.Info("the next hop's offers have changed", "next_hop", s.String(), "before", keywords(*before), "now", keywords(extensions))
	}
}

// warnWithoutXCLIENT warns that no mail can pass without XCLIENT, once until it is
// offered again. The caller holds s.known.mu.
func (s *server) warnWithoutXCLIENT() {
	k := &s.known
	missing := s.needsXCLIENT() && !k.own.Has("XCLIENT")
	if missing && !k.warned {
		s.log.Warn("no mail can pass: the next hop does not offer XCLIENT to the gate (Postfix: smtpd_authorized_xclient_hosts)",
			"next_hop", s.String(), "offers", keywords(k.own))
	}
	k.warned = missing
}

// bothOffer returns the keywords that both offer: see Extensions. One of the sets
// may be nil.
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

// Probe connects to learn what the next hop offers and whether it accepts mail: MAIL
// FROM:<>, then RSET. The connection may be kept for a client. After a failure the
// last known offers stay. A refusal that says nothing about clients is no error: the
// State is then unsure.
func (s *SMTP) Probe(ctx context.Context) error {
	if err := s.checkOpen(); err != nil {
		return err
	}
	err := s.probe(ctx)
	if errors.Is(err, errUpgraded) {
		err = s.probe(ctx)
	}
	var refused *ReplyError
	switch {
	case err == nil:
		s.known.health.markUp()
		return nil
	case errors.Is(err, errUnsure) && errors.As(err, &refused):
		s.noteUnsure(quote(refused.Reply))
		return nil
	case errors.Is(err, ErrSession):
		s.noteSession(err)
	default:
		s.known.health.noteFailure(ctx, err)
	}
	return fmt.Errorf("next hop %s: probe: %w", s, err)
}

// noteUnsure notes a refusal of a probe that says nothing about clients.
func (s *SMTP) noteUnsure(reply string) {
	h := &s.known.health
	before := h.unsure.Swap(&reply)
	if h.v.Load() != healthRefuses { // only a client's MAIL will tell
		h.v.Store(healthUnsure)
	}
	if before == nil || *before != reply {
		s.log.Info("next hop refuses the probe: whether mail of clients can pass is not known", "next_hop", s.String(), "reply", reply)
	}
}

// probe does the work of Probe.
func (s *SMTP) probe(ctx context.Context) error {
	c, err := s.connect(ctx, nil)
	if err != nil {
		return err
	}
	err = c.during(ctx, func() error { return s.tryMail(c) })
	var refused *ReplyError
	switch {
	case err == nil:
		s.release(c, false)
	case errors.As(err, &refused) && refused.Reply.Code != codeClosing, isAny(err, []error{ErrNoXCLIENT, ErrSession}):
		s.dismiss(c)
	default:
		c.Close()
	}
	return err
}

// WaitKnown waits for the end of the first probe. It returns at once if there are no
// probes.
func (s *SMTP) WaitKnown(ctx context.Context) {
	if s.config.ProbeInterval < 0 {
		return
	}
	select {
	case <-s.known.probed:
	case <-s.ctx.Done():
	case <-ctx.Done():
	}
}

// keepProbing probes at once, and then whenever nobody has connected for
// ProbeInterval, or the server has accepted no MAIL in it, until Close.
func (s *SMTP) keepProbing(ctx context.Context) {
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
		s.known.once.Do(func() { close(s.known.probed) }) // ends WaitKnown
		since = time.Now().UnixNano()
		tenth := s.config.ProbeInterval / 10
		select {
		case <-time.After(s.config.ProbeInterval - tenth + rand.N(2*tenth+1)):
		case <-ctx.Done():
			return
		}
	}
}

// logProbe logs the first failure as a warning, and its end.
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
		level, text = slog.LevelWarn, "next hop cannot be probed: clients get its last known offers"
		if s.known.heard.Load() == 0 {
			text = "next hop cannot be probed: clients get the default offers"
		}
	case failing && s.known.health.v.Load() == healthUp:
		level, text = slog.LevelInfo, "next hop can be probed again, and takes mail"
	}
	s.log.Log(context.Background(), level, text, "next_hop", s.String(), "error", err, "offers", keywords(s.Extensions()))
}
