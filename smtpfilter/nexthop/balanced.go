package nexthop

import (
	"context"
	"fmt"
	"sync"

	"spamgate/smtpfilter/wire"
)

// Begin starts a transaction. Its first Rcpt chooses the member.
func (g *Group) Begin(env Envelope) Transaction {
	env.Client.LookupName = lookupOnce(env.Client.LookupName)
	return &balanced{group: g, env: env}
}

// balanced is a Transaction of a Group: that of the member it was given to.
type balanced struct {
	group  *Group
	env    Envelope
	chosen bool   // inner is the member's that has answered
	server string // the name of that member
	err    error  // after which nothing works

	mu      sync.Mutex
	inner   Transaction
	aborted bool
}

// Rcpt asks for a recipient. The first one goes to one member after the other
// until one answers.
func (b *balanced) Rcpt(ctx context.Context, to string, params []string) (wire.Reply, error) {
	if b.err != nil {
		return wire.Reply{}, b.err
	}
	if b.chosen {
		return b.inner.Rcpt(ctx, to, params)
	}
	var reply wire.Reply
	var err error
	var asked *member
	order := b.group.order()
	for i, m := range order {
		asked = m
		if !b.start(m) {
			b.err = fmt.Errorf("next hop %s: RCPT: %w", b.group, ErrAborted)
			return wire.Reply{}, b.err
		}
		reply, err = b.inner.Rcpt(ctx, to, params)
		if err != nil && !sendable(b.env, to, params) {
			break
		}
		if !b.group.tryNext(ctx, m, reply, err) || i == len(order)-1 {
			break
		}
		b.inner.Abort()
	}
	b.chosen, b.err = true, err
	if err == nil {
		b.server = asked.String()
	}
	return reply, err
}

// Server names the member that has answered the first recipient; "" before that.
func (b *balanced) Server() string { return b.server }

// start begins the transaction anew with a member, unless it is aborted.
func (b *balanced) start(m *member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.aborted {
		b.inner = m.Begin(b.env)
	}
	return !b.aborted
}

// sendable reports whether the envelope can be written as commands at all: where
// it can't, no member is to blame.
func sendable(env Envelope, to string, params []string) bool {
	_, mailErr := pathCommand("MAIL FROM:<", env.From, env.Params)
	_, rcptErr := pathCommand("RCPT TO:<", to, params)
	return mailErr == nil && rcptErr == nil
}

// Data opens the message with the member that was chosen.
func (b *balanced) Data(ctx context.Context, f Format) (Message, wire.Reply, error) {
	if b.err == nil && !b.chosen {
		b.err = fmt.Errorf("next hop %s: DATA: no recipient was asked for", b.group)
	}
	if b.err != nil {
		return nil, wire.Reply{}, b.err
	}
	return b.inner.Data(ctx, f)
}

// Abort aborts the transaction with the member that has it now.
func (b *balanced) Abort() {
	b.mu.Lock()
	b.aborted = true
	inner := b.inner
	b.mu.Unlock()
	if inner != nil {
		inner.Abort()
	}
}
