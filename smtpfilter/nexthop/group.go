package nexthop

import (
	"cmp"
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

// Balance says which member of a Group gets a message.
type Balance uint8

// The ways to balance.
const (
	// Priority chooses the first member that is up, in the order of the list.
	Priority Balance = iota

	// RoundRobin chooses the members that are up in turn.
	RoundRobin
)

// GroupConfig configures a Group.
type GroupConfig struct {
	Balance Balance

	// BackoffMin and BackoffMax limit how long a member gets no mail after a
	// failure: the minimum after the first one, twice as long after each further
	// one, up to the maximum, less a random part of up to a quarter. Zero is 1 s
	// and 1 min.
	BackoffMin, BackoffMax time.Duration

	// Random returns the random part of a back-off, from 0 up to 1; nil is rand.Float64.
	Random func() float64

	// Logger receives members that go down or come back. Nil discards it.
	Logger *slog.Logger

	clock clock // for tests; the zero clock is the real one
}

// Group is a Target of several members that can replace each other, such as the
// machines of one mail system. It owns its members.
//
// The first recipient decides which member gets a transaction. A member fails if,
// before it answers that recipient, it cannot be reached, greets with a refusal,
// closes the connection, makes no sense, or refuses the gate's own session
// (ErrSession, which takes it down whenever it comes). Then the group tries the next member,
// and the client notices nothing.
//
// The group also tries the next member, without counting a failure, if the member
//   - answers 421, refuses a client in XCLIENT, refuses in the greeting a client that the PROXY
//     protocol names, or takes too long over a command while it answers others: this
//     may be about the one client;
//   - is a gate that leads back to this one (554 5.4.6) or finds no mail server
//     (4.4.1);
//   - does not offer what the message needs (ErrNotOffered, ErrNoXCLIENT,
//     ErrRequireTLS).
//
// Any other reply is an answer, refusals included.
//
// A member that has failed is down, and gets no mail while others are up. After its
// back-off the group probes it in the background, or with the next transaction if it
// has no Probe. If no other member answers, the group tries those that are down,
// each once. If nobody answers, the client gets the result of the first member that
// may be back later: the reply is a mail loop only if all members lead back.
type Group struct {
	members []*member
	config  GroupConfig
	log     *slog.Logger
	turn    atomic.Uint64 // for RoundRobin

	ctx    context.Context // of probes; ended by Close
	cancel context.CancelFunc
	probes sync.WaitGroup
}

var (
	_ Target        = (*Group)(nil)
	_ Authenticator = (*Group)(nil)
)

// NewGroup returns a group of one or more members, and probes those at once that have
// a method Probe(context.Context) error. Closing the group closes its members.
func NewGroup(members []Target, config GroupConfig) (*Group, error) {
	if len(members) == 0 {
		return nil, errors.New("next hop: a group without members")
	}
	config.BackoffMin = cmp.Or(config.BackoffMin, time.Second)
	config.BackoffMax = cmp.Or(config.BackoffMax, time.Minute)
	if config.BackoffMin < 0 || config.BackoffMax < config.BackoffMin {
		return nil, fmt.Errorf("next hop: invalid back-off from %v to %v", config.BackoffMin, config.BackoffMax)
	}
	g := &Group{config: config, log: logger(config.Logger)}
	if config.Random != nil {
		config.clock.part = config.Random
	}
	g.config.clock = config.clock.withDefaults()
	g.ctx, g.cancel = context.WithCancel(context.Background())
	for _, target := range members {
		m := &member{Target: target, group: g}
		if s, ok := target.(*SMTP); ok {
			failed := m.failed
			s.failed.Store(&failed)
		}
		g.members = append(g.members, m)
		m.watch()
	}
	return g, nil
}

// Members returns the targets of the group, in the order of NewGroup.
func (g *Group) Members() []Target {
	targets := make([]Target, len(g.members))
	for i, m := range g.members {
		targets[i] = m.Target
	}
	return targets
}

// String returns the members' names in brackets.
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

// Authenticate passes a client's AUTH command to a member. Until a member answers or
// sends a challenge, the group tries the next one. It skips members without AUTH.
func (g *Group) Authenticate(ctx context.Context, client Client, args string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error) {
	client.LookupName = lookupOnce(client.LookupName)
	asked := false
	var gone error // the client's, not the member's
	askClient := func(challenge wire.Reply) (line string, err error) {
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
		m.onPath(func() { login, reply, err = auth.Authenticate(ctx, client, args, askClient) })
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

// tryNext evaluates a member's result for a client's first command, and reports
// whether to try another member.
func (g *Group) tryNext(ctx context.Context, m *member, reply wire.Reply, err error) bool {
	switch {
	case err == nil && reply.Code != codeClosing:
		m.succeeded()
		return false
	case err == nil || ofClient(err):
		return true // it may be about this client, which must not take a member down
	case lacksFeature(err):
		return true
	case ctx.Err() != nil || errors.Is(err, ErrAborted) || errors.Is(err, ErrClosed):
		return false
	}
	m.failed(err)
	return true
}

// ofClient reports whether an error may be about one client only: the server refused
// its identity, or took too long over its command.
func ofClient(err error) bool {
	return isAny(err, []error{errXCLIENT, errProxied, errSlow})
}

// lookupOnce returns a function that calls lookup once and remembers the result: each
// member that is tried may need it. Nil stays nil.
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

// Extensions returns the keywords that all members offer that are up, or all members
// if none is: the member that gets a client's message can do what the client was
// offered. SIZE has the smallest limit, AUTH the common mechanisms. Other keywords
// are left out unless all members give them the same parameters.
func (g *Group) Extensions() wire.Extensions {
	members := g.upOrAll()
	common := members[0].Extensions()
	for _, m := range members[1:] {
		common = intersect(common, m.Extensions())
	}
	return common
}

// intersect returns what both offer.
func intersect(a, b wire.Extensions) wire.Extensions {
	common := make(wire.Extensions)
	for keyword, params := range a {
		others, ok := b[keyword]
		switch {
		case !ok:
		case keyword == "SIZE":
			common[keyword] = params
			if limit := b.Size(); limit > 0 && (a.Size() == 0 || limit < a.Size()) {
				common[keyword] = others
			}
		case keyword == "AUTH":
			if mechanisms := both(params, others); len(mechanisms) > 0 {
				common[keyword] = mechanisms
			}
		case slices.EqualFunc(params, others, strings.EqualFold):
			common[keyword] = params
		}
	}
	return common
}

// both returns the words of a that are also in b, ignoring case.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(word string) bool {
		return !slices.ContainsFunc(b, func(other string) bool { return strings.EqualFold(word, other) })
	})
}
