package nexthop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"spamgate/smtpfilter/wire"
)

// Begin starts a transaction. Its first Rcpt chooses the member.
func (g *Group) Begin(env Envelope) Transaction {
	env.Client.LookupName = lookupOnce(env.Client.LookupName)
	b := &balanced{group: g, env: env}
	if g.ctx.Err() != nil {
		b.err = fmt.Errorf("next hop %s: %w", g, ErrClosed)
	}
	return b
}

// balanced is a Transaction of a Group.
type balanced struct {
	group   *Group
	env     Envelope
	chosen  bool       // a member has answered, whose transaction is inner
	server  string     // the name of that member
	refused wire.Reply // the reply to all later commands, if inner is over
	err     error      // the result of all later calls

	mu      sync.Mutex
	inner   Transaction
	aborted bool
}

// Rcpt sends a recipient: the first one to one member after the other, until one
// answers.
func (b *balanced) Rcpt(ctx context.Context, to string, params []string) (wire.Reply, error) {
	if b.err != nil {
		return wire.Reply{}, b.err
	}
	if !b.refused.IsZero() {
		return b.refused, nil
	}
	if b.chosen {
		return b.inner.Rcpt(ctx, to, params)
	}
	best := b.choose(ctx, to, params)
	if b.err = best.err; b.err != nil {
		return wire.Reply{}, b.err
	}
	b.chosen = true
	if best.abandoned {
		b.inner.Abort()
		b.refused = best.reply
	}
	b.server = best.member.String()
	return best.reply, nil
}

// outcome is a member's result for the first recipient.
type outcome struct {
	member    *member
	reply     wire.Reply
	err       error
	abandoned bool // another member was tried after it
}

// choose sends the first recipient to one member after the other, until one answers.
// If none does, it returns the outcome that may change soonest: see rank.
func (b *balanced) choose(ctx context.Context, to string, params []string) (best outcome) {
	order := b.group.order()
	for i, m := range order {
		if !b.start(m) {
			return outcome{err: fmt.Errorf("next hop %s: RCPT: %w", b.group, ErrAborted)}
		}
		current := outcome{member: m}
		m.onPath(func() { current.reply, current.err = b.inner.Rcpt(ctx, to, params) })
		last := current.err != nil && !sendable(b.env, to, params) || !b.group.tryNext(ctx, m, current.reply, current.err)
		if last && !current.isLoop() && !current.isGateWithoutServer() {
			return current
		}
		if best.member == nil || current.rank() > best.rank() {
			best = current
		} else {
			best.abandoned = true
		}
		if i < len(order)-1 {
			best.abandoned = true
			b.inner.Abort()
		}
	}
	return best
}

// rank ranks outcomes: a member that is down may be back soon; one without REQUIRETLS
// may have it after its next start; a loop stays.
func (o outcome) rank() int {
	switch {
	case o.isLoop():
		return 0
	case errors.Is(o.err, ErrRequireTLS):
		return 1
	}
	return 2
}

// isLoop reports whether the member is a gate that leads back to this one.
func (o outcome) isLoop() bool {
	if o.err != nil {
		return errors.Is(o.err, ErrLoop)
	}
	return o.reply.Permanent() && strings.HasPrefix(o.reply.Lines[0], "5.4.6 ")
}

// isGateWithoutServer reports whether the member is a gate that found no mail server.
func (o outcome) isGateWithoutServer() bool {
	return o.err == nil && o.reply.Temporary() && strings.HasPrefix(o.reply.Lines[0], "4.4.1 ") && len(Path(o.member.Target)) > 0
}

// Server returns the name of the member that answered the first recipient, or "".
func (b *balanced) Server() string { return b.server }

// start begins a transaction with a member, and returns false after Abort.
func (b *balanced) start(m *member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.aborted {
		b.inner = m.begin(b.env)
	}
	return !b.aborted
}

// begin begins a transaction with the member, also after Close: that of the group was begun before, and a
// reload between MAIL and the first RCPT must not end it.
func (m *member) begin(env Envelope) Transaction {
	if s, ok := m.Target.(*SMTP); ok {
		return newTransaction(s, env)
	}
	return m.Begin(env)
}

// sendable reports whether the envelope can be written as commands. If not, the error
// is not the member's.
func sendable(env Envelope, to string, params []string) bool {
	_, mailErr := pathCommand("MAIL FROM:<", env.From, env.Params)
	_, rcptErr := pathCommand("RCPT TO:<", to, params)
	return mailErr == nil && rcptErr == nil
}

// Data opens the message at the chosen member.
func (b *balanced) Data(ctx context.Context, f Format) (Message, wire.Reply, error) {
	if b.err == nil && !b.chosen {
		b.err = fmt.Errorf("next hop %s: DATA before RCPT", b.group)
	}
	if b.err != nil {
		return nil, wire.Reply{}, b.err
	}
	if !b.refused.IsZero() {
		return nil, b.refused, nil
	}
	return b.inner.Data(ctx, f)
}

// Abort aborts the member's transaction.
func (b *balanced) Abort() {
	b.mu.Lock()
	b.aborted = true
	inner := b.inner
	b.mu.Unlock()
	if inner != nil {
		inner.Abort()
	}
}
