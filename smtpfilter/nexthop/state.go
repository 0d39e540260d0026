package nexthop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"spamgate/smtpfilter/wire"
)

// State is what is known of a place that takes mail.
type State struct {
	Target string // its name
	Up     bool   // mail can pass, as far as is known
	Known  bool   // anything is known
}

// States tells the state of a target, and of a group's members.
func States(t Target) []State {
	g, ok := t.(*Group)
	if !ok {
		return []State{stateOf(t)}
	}
	var all []State
	for _, m := range g.members {
		s := stateOf(m.Target)
		s.Up = s.Up && m.up()
		all = append(all, s)
	}
	return all
}

// stateOf is the state as the target itself knows it. A Maildir is on this
// machine: it takes mail until a delivery fails, and again with the next that does not.
func stateOf(t Target) State {
	s := State{Target: t.String(), Up: true, Known: true}
	switch t := t.(type) {
	case *SMTP:
		s.Up, s.Known = t.known.health.state()
	case *Maildir:
		s.Up = t.health.v.Load() != healthDown
	}
	return s
}

// health says whether mail can pass to a server: whether a connection can be had, TLS
// and XCLIENT where they must be, and MAIL is accepted. A connection that is greeted
// alone proves nothing. The zero health is unknown.
type health struct {
	v      atomic.Int32
	passed atomic.Int64 // when MAIL was accepted last, in nanoseconds since 1970
}

const (
	healthUp   = 1
	healthDown = 2
)

// passes notes that MAIL was accepted.
func (h *health) markUp() {
	h.passed.Store(time.Now().UnixNano())
	h.v.Store(healthUp)
}

// passedSince reports whether mail can pass, and MAIL was accepted since t.
func (h *health) passedSince(t int64) bool { return h.v.Load() == healthUp && h.passed.Load() >= t }

func (h *health) state() (up, known bool) {
	v := h.v.Load()
	return v == healthUp, v != 0
}

// failed notes why a transaction or a probe has found no way to the server. Errors
// about one message, one client or the gate itself say nothing about others.
func (h *health) noteFailure(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrAborted), errors.Is(err, ErrClosed), errors.Is(err, errLoggedOut):
	case errors.Is(err, ErrNotOffered), errors.Is(err, ErrRequireTLS), ofClient(err):
	default:
		h.v.Store(healthDown)
	}
}

// errNoMail is wrapped by the errors about a server that answers, and would not take
// mail.
var errNoMail = errors.New("no mail can pass")

// tryMail finds out whether the server would take mail, on a connection of our own:
// MAIL FROM:<>, which RFC 5321 (section 4.5.5) wants accepted, and RSET. An error says
// that it would not.
func (s *SMTP) tryMail(c *conn) error {
	if s.needsXCLIENT() && !c.offers.Has("XCLIENT") {
		return ErrNoXCLIENT
	}
	reply, err := c.ask("MAIL FROM:<>", c.timeouts.Hello, 0)
	if err != nil {
		return fmt.Errorf("%w: MAIL: %w", errNoMail, err)
	}
	if !reply.Positive() && !s.inconclusive(c, reply) {
		return &ReplyError{Reply: reply, Err: fmt.Errorf("%w: MAIL FROM:<> refused", errNoMail)}
	}
	if !reply.Positive() {
		return nil
	}
	c.mails++
	reply, err = c.ask("RSET", c.timeouts.Hello, 0)
	if err == nil && !reply.Positive() {
		err = &ReplyError{Reply: reply, Err: fmt.Errorf("%w: RSET refused", errNoMail)}
	}
	return err
}

// inconclusive reports whether a refusal of our own MAIL says nothing about clients: the
// server wants them to log in, or is told who they are.
func (s *SMTP) inconclusive(c *conn, r wire.Reply) bool {
	if !r.Permanent() {
		return false
	}
	return r.Code == codeLoginFirst && c.offers.Has("AUTH") || s.config.Proxy != 0 || s.usesXCLIENT() && c.offers.Has("XCLIENT")
}

// codeLoginFirst is the reply to commands that need AUTH (RFC 4954, section 6).
const codeLoginFirst = 530
