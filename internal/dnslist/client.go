package dnslist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"spamgate/internal/recent"
	"spamgate/internal/resolver"
)

// Config configures a Client.
type Config struct {
	Lists []List

	// Resolvers are asked in turn. If there are none, those in /etc/resolv.conf are.
	Resolvers []netip.AddrPort

	Log  *slog.Logger  // nil: slog.Default()
	Dial resolver.Dial // nil: as net.Dialer does
}

// Client asks the lists. Its methods are safe for concurrent use.
type Client struct {
	cache  cache
	cancel context.CancelFunc
	log    *slog.Logger

	mu        sync.Mutex            // of Apply and Close
	lists     atomic.Pointer[lists] // replaced as a whole
	resolvers []netip.AddrPort      // as configured

	// epochs are part of the keys of a zone's answers: a higher one makes the earlier
	// answers unknown. They outlive a zone's lists, as answers do. Guarded by mu.
	epochs map[string]*atomic.Uint32
}

// lists are the lists of one configuration.
type lists struct {
	order  []*list
	byName map[string]*list
}

// list is a List, ready for use.
type list struct {
	List
	rules []code
	state *state // survives a change of the other fields
}

// New returns a Client, and begins the first check of its lists.
func New(c Config) (*Client, error) {
	client := &Client{log: c.Log, epochs: map[string]*atomic.Uint32{}}
	if client.log == nil {
		client.log = slog.Default()
	}
	client.cache.resolver = resolver.New(c.Dial, "/etc/resolv.conf")
	client.cache.entries = recent.New[key, *entry](maxCached)
	client.cache.ctx, client.cancel = context.WithCancel(context.Background())
	client.lists.Store(&lists{})
	if err := client.Apply(c.Lists, c.Resolvers); err != nil {
		return nil, err
	}
	return client, nil
}

// Apply sets the lists and the resolvers from now on. Messages keep the lists that they
// began with. What is known of a list stays, unless its zone or its test point changed.
// All lists are checked at once.
func (c *Client) Apply(configured []List, resolvers []netip.AddrPort) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache.ctx.Err() != nil {
		return errors.New("the client of DNS lists is closed")
	}
	old := c.lists.Load()
	next := &lists{byName: map[string]*list{}}
	for _, l := range configured {
		if err := complete(&l); err != nil {
			return fmt.Errorf("list %s: %w", l.Name, err)
		}
		if next.byName[l.Name] != nil {
			return fmt.Errorf("list %s: there are two of this name", l.Name)
		}
		added := &list{List: l, rules: l.Codes.rules()}
		if was := old.byName[l.Name]; was != nil && was.Zone == l.Zone && was.Test == l.Test {
			added.state = was.state
		}
		next.order = append(next.order, added)
		next.byName[l.Name] = added
	}
	c.cache.resolver.Configure(resolvers)
	if !slices.Equal(resolvers, c.resolvers) {
		c.resolvers = slices.Clone(resolvers)
		for _, epoch := range c.epochs {
			epoch.Add(1) // another resolver may not have invented the answers
		}
	}
	for _, l := range next.order {
		if l.state == nil {
			l.state = newState(c.cache.ctx, c.log, c.epoch(l.Zone))
			l.state.list.Store(l)
			c.cache.running.Go(func() { c.watch(l.state) })
		} else {
			l.state.list.Store(l)
			l.state.recheck()
		}
	}
	kept := map[*state]bool{}
	for _, l := range next.order {
		kept[l.state] = true
	}
	for l := range maps.Values(old.byName) {
		if !kept[l.state] {
			l.state.stop()
		}
	}
	c.lists.Store(next)
	return nil
}

// epoch returns the epoch of a zone. The caller must hold mu.
func (c *Client) epoch(zone string) *atomic.Uint32 {
	if c.epochs[zone] == nil {
		c.epochs[zone] = new(atomic.Uint32)
	}
	return c.epochs[zone]
}

// complete checks a List and sets its defaults.
func complete(l *List) error {
	if err := CheckZone(l.Zone); err != nil {
		return err
	}
	if l.Test != "" {
		if err := CheckTest(l.Test, l.Zone); err != nil {
			return err
		}
	}
	l.Zone, l.Test = strings.ToLower(l.Zone), strings.ToLower(l.Test)
	if l.Timeout <= 0 {
		l.Timeout = DefaultTimeout
	}
	return nil
}

// Close ends the questions and checks under way. Afterwards all answers are Unknown.
func (c *Client) Close() {
	c.mu.Lock()
	c.cache.mu.Lock() // no question begins between cancel and Wait
	c.cancel()
	c.cache.mu.Unlock()
	c.mu.Unlock()
	c.cache.running.Wait()
}

// Message returns the questions of a new message.
func (c *Client) Message() *Message {
	return &Message{cache: &c.cache, lists: c.lists.Load()}
}

// Status returns the state of each list, in the order of the configuration.
func (c *Client) Status() []Status {
	var all []Status
	for _, l := range c.lists.Load().order {
		all = append(all, l.status())
	}
	return slices.Clip(all)
}
