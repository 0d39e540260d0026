package nexthop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/smtpfilter/wire"
)

// State is the state of a target.
type State struct {
	Target string // its name
	Up     bool   // mail can pass, as far as is known
	Known  bool   // it is known whether mail can pass

	// Unsure is the reply to the last probe if the target refused it, but may take
	// mail of clients: it learns who they are, or they log in. "" is none.
	Unsure string

	Passed time.Time // when it last accepted MAIL; zero if that is not known
	Err    error     // why the probe of Check failed, or the refusal of the gate's session

	// Recipients is how many recipients of the last 10 minutes the target accepted or
	// refused for good, and RecipientsRefused how many of them it refused. Warning
	// says that these are too many.
	Recipients, RecipientsRefused int
	Warning                       string
}

// MayPass reports whether mail can pass, or may: nothing but an unsure probe is known.
func (s State) MayPass() bool { return s.Known && s.Up || s.Unsure != "" }

// States returns the state of a target, or of a group's members.
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

// stateOf returns the target's own state. A Maildir is up until a delivery fails, and
// again after one that succeeds.
func stateOf(t Target) State {
	s := State{Target: t.String(), Up: true, Known: true}
	switch t := t.(type) {
	case *SMTP:
		h := &t.known.health
		v := h.v.Load()
		s.Up, s.Known = v == healthUp, v != 0 && v != healthUnsure
		if offset := h.passed.Load(); offset != 0 {
			s.Passed = time.Unix(0, offset)
		}
		switch v {
		case healthUnsure:
			s.Unsure = *h.unsure.Load()
		case healthRefuses:
			s.Err = fmt.Errorf("next hop %s: %w", t, *h.refusal.Load())
		}
		s.Recipients, s.RecipientsRefused, s.Warning = t.refusals.lately()
	case *Maildir:
		s.Up = t.health.v.Load() != healthDown
	}
	return s
}

// Check returns the state of a target, or of a group's members. It first probes those
// that are not up, or have not accepted MAIL for the time fresh, all at once.
func Check(ctx context.Context, t Target, fresh time.Duration) []State {
	members := []Target{t}
	if g, ok := t.(*Group); ok {
		members = g.Members()
	}
	states := make([]State, len(members))
	var probes sync.WaitGroup
	for i, m := range members {
		probes.Go(func() { states[i] = checkNow(ctx, m, fresh) })
	}
	probes.Wait()
	return states
}

func checkNow(ctx context.Context, t Target, fresh time.Duration) State {
	s := stateOf(t)
	p, ok := t.(prober)
	if !ok || s.Up && time.Since(s.Passed) < fresh {
		return s
	}
	err := p.Probe(ctx)
	if s = stateOf(t); err != nil {
		s.Known, s.Up, s.Unsure, s.Err = true, false, "", err
	}
	return s
}

// health says whether mail can pass to a server: it can be reached, with TLS and
// XCLIENT if they are required, and accepts MAIL. A greeting alone proves nothing. The
// zero health is unknown.
type health struct {
	v      atomic.Int32
	passed atomic.Int64 // when MAIL was last accepted, in ns since 1970

	unsure  atomic.Pointer[string] // the last reply to a probe that says nothing about clients
	refusal atomic.Pointer[error]  // the last one that wraps ErrSession
}

const (
	healthUp      = 1
	healthDown    = 2
	healthUnsure  = 3 // see State.Unsure
	healthRefuses = 4 // the server refuses the gate's session, which only an accepted MAIL ends
)

// markUp notes that MAIL was accepted.
func (h *health) markUp() {
	h.passed.Store(time.Now().UnixNano())
	h.v.Store(healthUp)
}

// passedSince reports whether mail can pass and MAIL was accepted since t.
func (h *health) passedSince(t int64) bool { return h.v.Load() == healthUp && h.passed.Load() >= t }

// noteFailure notes the error of a transaction or a probe. Errors about one message,
// one client or the gate itself say nothing about others. noteSession notes ErrSession.
func (h *health) noteFailure(ctx context.Context, err error) {
	if ctx.Err() == nil && !ofClient(err) && !isAny(err, []error{ErrAborted, ErrClosed, errLoggedOut, ErrNotOffered, ErrRequireTLS, ErrSession}) {
		h.v.Store(healthDown)
	}
}

// errNoMail is wrapped by the errors about a server that answers, but does not accept
// mail.
var errNoMail = errors.New("no mail can pass")

// tryMail tries whether the server accepts mail, on a connection of our own: MAIL
// FROM:<>, which RFC 5321 (section 4.5.5) wants accepted, and RSET.
func (s *SMTP) tryMail(c *conn) error {
	if s.needsXCLIENT() && !c.offers.Has("XCLIENT") {
		return ErrNoXCLIENT
	}
	reply, err := c.ask("MAIL FROM:<>", c.timeouts.Hello, 0)
	if err != nil {
		return fmt.Errorf("%w: MAIL: %w", errNoMail, err)
	}
	switch {
	case reply.Positive():
	case aboutSession(reply) && !c.wantsLogin(reply):
		return fmt.Errorf("%w: %w", errNoMail, s.sessionError(c, "MAIL FROM:<> refused: ", reply))
	case s.inconclusive(c, reply):
		return &ReplyError{Reply: reply, Err: errUnsure}
	default:
		return &ReplyError{Reply: reply, Err: fmt.Errorf("%w: MAIL FROM:<> refused", errNoMail)}
	}
	c.mails++
	reply, err = c.ask("RSET", c.timeouts.Hello, 0)
	if err == nil && !reply.Positive() {
		err = &ReplyError{Reply: reply, Err: fmt.Errorf("%w: RSET refused", errNoMail)}
	}
	return err
}

// inconclusive reports whether a refusal of our own MAIL says nothing about clients:
// they must log in first, or the server receives their identity.
func (s *server) inconclusive(c *conn, r wire.Reply) bool {
	if !r.Permanent() {
		return false
	}
	return c.wantsLogin(r) || s.config.Proxy != 0 || s.usesXCLIENT() && c.offers.Has("XCLIENT")
}

// errUnsure is wrapped by the error for a probe with an inconclusive refusal.
var errUnsure = errors.New("probe refused, which may not hold for clients")

// A server that has lost its recipients refuses all of them, and looks healthy: it accepts MAIL.
// So the gate knows the share of recipients that were refused for good in the last ten minutes.
// Those with a 4xx do not count, since greylisting defers most.

// The share is a warning above suspectShare percent of at least suspectFrom recipients.
const (
	suspectShare = 90
	suspectFrom  = 50
)

// refusals counts recipients. The zero refusals is empty.
type refusals struct {
	clock func() time.Time // nil is time.Now

	mu      sync.Mutex
	minutes [10]struct {
		minute            int64 // since 1970
		answered, refused int
	}
	last string // reply
}

// now returns the present minute.
func (r *refusals) now() int64 {
	if r.clock != nil {
		return r.clock().Unix() / 60
	}
	return time.Now().Unix() / 60
}

// add counts the reply to recipients. Those that were accepted at RCPT are answered already if the
// reply is to their message.
func (r *refusals) add(answered, recipients int, reply wire.Reply) {
	if !reply.Positive() && !reply.Permanent() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.now()
	m := &r.minutes[current%int64(len(r.minutes))]
	if m.minute != current {
		m.minute, m.answered, m.refused = current, 0, 0
	}
	m.answered += answered
	if reply.Positive() {
		return
	}
	m.refused += recipients
	r.last = quote(reply)
}

// lately returns how many recipients were answered and refused in the last ten minutes, and a
// warning if these are too many.
func (r *refusals) lately() (answered, refused int, warning string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.now()
	for _, m := range r.minutes {
		if current-m.minute < int64(len(r.minutes)) {
			answered, refused = answered+m.answered, refused+m.refused
		}
	}
	refused = min(refused, answered) // a message is refused later than its recipients are accepted
	if answered < suspectFrom || refused*100 <= answered*suspectShare {
		return answered, refused, ""
	}
	return answered, refused, fmt.Sprintf("it refused %d of %d recipients in the last 10 minutes, the last with %q; its recipients may be lost, or one client guesses addresses",
		refused, answered, r.last)
}
