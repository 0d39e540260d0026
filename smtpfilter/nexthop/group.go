package nexthop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/smtpfilter/wire"
)

// Balance is how a Group shares messages out.
type Balance uint8

// The ways to share out.
const (
	// Priority is the first member that is up, as they are listed.
	Priority Balance = iota

	// RoundRobin is each member that is up in turn.
	RoundRobin
)

// GroupConfig says how a Group chooses.
type GroupConfig struct {
	Balance Balance

	// BackoffMin and BackoffMax bound how long a member that has failed is left
	// alone: the minimum after the first failure, twice as long after each
	// further one, up to the maximum. Up to a quarter of that is taken off at
	// random. Zero is 1 s and 1 min.
	BackoffMin, BackoffMax time.Duration

	// Logger hears of members that go down or come back. Nil discards it.
	Logger *slog.Logger

	clock clock // for tests; the zero clock is the real one
}

// Group is several targets that serve for each other, such as the machines of
// one mail system. It owns its members.
//
// The first recipient decides which member a transaction goes to, and it stays
// there. A member fails when it can't be connected to, greets with a refusal, is
// cut off, or says nothing that makes sense before it has answered that
// recipient. Then the next member is asked, and the client notices nothing. So it
// is where a member answers 421, refuses XCLIENT, or greets a client that the PROXY
// protocol has told it with a refusal, or takes too long over a command while it
// answers others: these may be meant for this one client, and take no member down.
// A gate that leads back to this one (554 5.4.6), or finds no mail server (4.4.1), is
// passed over, too. Any other reply is an answer, a refusal too. A member that
// says it cannot do what the message needs (ErrNotOffered, ErrNoXCLIENT,
// ErrRequireTLS) is passed over.
//
// A member that has failed is down, and is left alone while others are up. In the
// background it is probed each time its back-off has run out, where it can be;
// otherwise the next transaction probes it. Only where no other member has
// answered are those that are down asked, each once. If nobody answers, the client
// hears of the first that may be back later: a mail loop, which is for good, is the
// reply only if all members lead back.
type Group struct {
	members []*member
	config  GroupConfig
	log     *slog.Logger
	turn    atomic.Uint64 // counts choices, for RoundRobin

	ctx    context.Context // of probes; ended by Close
	cancel context.CancelFunc
	probes sync.WaitGroup
}

var (
	_ Target        = (*Group)(nil)
	_ Authenticator = (*Group)(nil)
)

// NewGroup makes a group of one or more members, which are closed with it. Those
// that have a method Probe(context.Context) error are probed at once.
func NewGroup(members []Target, config GroupConfig) (*Group, error) {
	if len(members) == 0 {
		return nil, errors.New("next hop: a group without members")
	}
	if config.BackoffMin == 0 {
		config.BackoffMin = time.Second
	}
	if config.BackoffMax == 0 {
		config.BackoffMax = time.Minute
	}
	if config.BackoffMin < 0 || config.BackoffMax < config.BackoffMin {
		return nil, fmt.Errorf("next hop: back-off from %v to %v", config.BackoffMin, config.BackoffMax)
	}
	g := &Group{config: config, log: logger(config.Logger)}
	g.config.clock = config.clock.orReal()
	g.ctx, g.cancel = context.WithCancel(context.Background())
	for _, target := range members {
		m := &member{Target: target, group: g}
		g.members = append(g.members, m)
		m.watch()
	}
	return g, nil
}

// Members are the targets of the group, as they were given.
func (g *Group) Members() []Target {
	targets := make([]Target, len(g.members))
	for i, m := range g.members {
		targets[i] = m.Target
	}
	return targets
}

// String is the members' names in brackets.
func (g *Group) String() string {
	names := make([]string, len(g.members))
	for i, m := range g.members {
		names[i] = m.String()
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Close ends the probes and closes the members.
func (g *Group) Close() error {
	g.cancel()
	for _, m := range g.members {
		m.unwatch()
	}
	g.probes.Wait()
	var all []error
	for _, m := range g.members {
		all = append(all, m.Close())
	}
	return errors.Join(all...)
}

// upOrAll returns the members that are up, or all members if none is.
func (g *Group) upOrAll() []*member {
	up := slices.DeleteFunc(slices.Clone(g.members), func(m *member) bool { return !m.up() })
	if len(up) == 0 {
		return g.members
	}
	return up
}

// order returns the members in the order in which a client's first command tries
// them: those that are up, then the others.
func (g *Group) order() []*member {
	up := make([]*member, 0, len(g.members))
	var down []*member
	for _, m := range g.members {
		if m.ready() {
			up = append(up, m)
		} else {
			down = append(down, m)
		}
	}
	if g.config.Balance == RoundRobin && len(up) > 1 {
		start := int((g.turn.Add(1) - 1) % uint64(len(up)))
		up = append(slices.Clone(up[start:]), up[:start]...)
	}
	return append(up, down...)
}

// Authenticate hands a client's AUTH command to a member. Until that has
// answered or asked something, another may be tried in its place. Members whose
// clients can't log in are passed over.
func (g *Group) Authenticate(ctx context.Context, client Client, args string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error) {
	client.LookupName = lookupOnce(client.LookupName)
	asked := false
	var gone error // of the client, which has no answer: no fault of the member's
	askNoting := func(challenge wire.Reply) (line string, err error) {
		asked = true
		line, gone = ask(challenge)
		return line, gone
	}
	var login Login
	var reply wire.Reply
	err := fmt.Errorf("next hop %s: AUTH: %w", g, ErrNotOffered)
	for _, m := range g.order() {
		auth, ok := m.Target.(Authenticator)
		if !ok {
			continue
		}
		m.onPath(func() { login, reply, err = auth.Authenticate(ctx, client, args, askNoting) })
		if gone != nil {
			m.succeeded()
			break
		}
		if !g.tryNext(ctx, m, reply, err) || asked {
			break
		}
	}
	return login, reply, err
}

// tryNext judges what a member made of a client's first command, and reports
// whether another member should be asked.
func (g *Group) tryNext(ctx context.Context, m *member, reply wire.Reply, err error) bool {
	switch {
	case err == nil && reply.Code != codeClosing:
		m.succeeded()
		return false
	case err == nil || ofClient(err):
		return true // it may be meant for this client alone, which must not take a member down
	case lacksFeature(err):
		return true
	case ctx.Err() != nil || errors.Is(err, ErrAborted) || errors.Is(err, ErrClosed):
		return false
	}
	m.failed(err)
	return true
}

// ofClient reports an error that may be about one client alone: the server refused to
// be told it, or took too long over it.
func ofClient(err error) bool {
	return errors.Is(err, errXCLIENT) || errors.Is(err, errProxied) || errors.Is(err, errSlow)
}

// lookupOnce makes a function that asks once and remembers, since each member
// that is tried may ask. Nil stays nil.
func lookupOnce(lookup func(context.Context) string) func(context.Context) string {
	if lookup == nil {
		return nil
	}
	var name string
	asked := false
	return func(ctx context.Context) string {
		if !asked {
			name, asked = lookup(ctx), true
		}
		return name
	}
}
