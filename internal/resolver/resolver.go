// Package resolver asks DNS questions of the resolvers that the configuration or
// /etc/resolv.conf names. It caches nothing: they do.
package resolver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

const (
	// maxQuestions bounds the questions under way, each of which has a socket, and
	// maxWaiting those that wait for one of these.
	maxQuestions = 256
	maxWaiting   = 4096

	// confInterval is how long what resolv.conf says is used without a look at it.
	confInterval = 5 * time.Second
)

// Cause says why a question has no answer. Its text is a label of metrics.
type Cause string

// The causes.
const (
	Timeout  Cause = "timeout"  // no answer within the time that the question has
	Servfail Cause = "servfail" // no server gets an answer, or what it sends is not one
	Network  Cause = "network"  // the servers cannot be reached
	Busy     Cause = "busy"     // too many questions are under way
	Stopped  Cause = "stopped"  // the caller's context has ended
)

// Resolver asks questions, of the first server that answers. Its methods are safe for
// concurrent use.
type Resolver struct {
	dial    Dial
	conf    string // /etc/resolv.conf
	waiting chan struct{}
	slots   chan struct{}

	// first is the index of the server to ask first: the last one that did not fail.
	first atomic.Uint32

	mu      sync.Mutex
	servers []string // as configured or as conf has them
	fixed   bool     // configured
	looked  time.Time
	changed time.Time // of conf
}

// New returns a Resolver. Until it is configured it asks the servers of a file in the form of
// resolv.conf(5). A nil dial connects as net.Dialer does.
func New(dial Dial, conf string) *Resolver {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &Resolver{
		dial: dial, conf: conf,
		waiting: make(chan struct{}, maxWaiting),
		slots:   make(chan struct{}, maxQuestions),
	}
}

// Configure sets the servers; without any, those of resolv.conf are used.
func (r *Resolver) Configure(servers []netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers, r.fixed, r.looked, r.changed = nil, len(servers) > 0, time.Time{}, time.Time{}
	for _, s := range servers {
		r.servers = append(r.servers, s.String())
	}
	r.first.Store(0)
}

// current returns the servers. It reads resolv.conf again if that has changed. Without
// any server there it is one on this machine, as resolv.conf(5) says.
func (r *Resolver) current() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.fixed || now.Sub(r.looked) < confInterval {
		return r.servers
	}
	r.looked = now
	if info, err := os.Stat(r.conf); err == nil && !info.ModTime().Equal(r.changed) {
		if conf, err := dns.ClientConfigFromFile(r.conf); err == nil {
			r.servers, r.changed = confServers(conf), info.ModTime()
		}
	}
	if len(r.servers) == 0 {
		r.servers = []string{"127.0.0.1:53"}
	}
	return r.servers
}

func confServers(conf *dns.ClientConfig) (servers []string) {
	for _, s := range conf.Servers {
		if a, err := netip.ParseAddr(s); err == nil {
			servers = append(servers, netip.AddrPortFrom(a, 53).String())
		}
	}
	return servers
}

// Ask asks for the records of a kind that a name has, and returns the reply or why there is
// none, within a time. Each server gets an equal part of it; a single one is asked twice,
// since datagrams get lost. The reply belongs to the question, and its code is success or
// NXDOMAIN. What panics because of a reply is a failure of that question, and not of the gate.
func (r *Resolver) Ask(ctx context.Context, name string, kind uint16, timeout time.Duration) (m *dns.Msg, cause Cause) {
	defer func() {
		if recover() != nil {
			m, cause = nil, Network
		}
	}()
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
	default:
		return nil, Busy
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, Busy
	}
	return r.askAll(ctx, name, kind)
}

// askAll asks one server after another.
func (r *Resolver) askAll(ctx context.Context, name string, kind uint16) (m *dns.Msg, cause Cause) {
	servers := r.current()
	first := r.first.Load()
	tries := max(2, len(servers))
	for i := range tries {
		position := (first + uint32(i)) % uint32(len(servers))
		m, cause = r.askOne(ctx, servers[position], name, kind, tries-i)
		if cause == "" {
			if i > 0 {
				r.first.CompareAndSwap(first, position)
			}
			return m, ""
		}
		if ctx.Err() != nil || cause == Servfail && i+1 >= len(servers) {
			break
		}
	}
	return nil, cause
}

// askOne asks one server, for a part of the time that is left.
func (r *Resolver) askOne(ctx context.Context, server, name string, kind uint16, parts int) (*dns.Msg, Cause) {
	if deadline, ok := ctx.Deadline(); ok && parts > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(parts))
		defer cancel()
	}
	m, err := r.dial.exchange(ctx, server, name, kind)
	var timeout net.Error
	switch {
	case err == nil && isAnswer(m):
		return m, ""
	case err == nil, errors.Is(err, errNoReply):
		return nil, Servfail
	case ctx.Err() == context.Canceled:
		return nil, Stopped
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return nil, Timeout
	}
	return nil, Network
}
