package dnslist

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

// resolver asks questions, of the first server that answers.
type resolver struct {
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

func newResolver(dial Dial, conf string) *resolver {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &resolver{
		dial: dial, conf: conf,
		waiting: make(chan struct{}, maxWaiting),
		slots:   make(chan struct{}, maxQuestions),
	}
}

// configure sets the servers; without any, those of resolv.conf are used.
func (r *resolver) configure(servers []netip.AddrPort) {
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
func (r *resolver) current() []string {
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

// askContained is ask. What panics because of an answer is a failure of that question, and
// not of the gate.
func (r *resolver) askContained(ctx context.Context, name string, kind uint16, timeout time.Duration) (a answer) {
	defer func() {
		if recover() != nil {
			a = failed(CauseNetwork)
		}
	}()
	return r.ask(ctx, name, kind, timeout)
}

// ask asks a question and returns the answer, within a time. Each server gets an
// equal part of it; a single one is asked twice, since datagrams get lost.
func (r *resolver) ask(ctx context.Context, name string, kind uint16, timeout time.Duration) answer {
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
	default:
		return answer{cause: CauseBusy} // not cached
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return answer{cause: CauseBusy}
	}
	servers := r.current()
	first := r.first.Load()
	tries := max(2, len(servers))
	result := failed(CauseNetwork)
	for i := range tries {
		at := (first + uint32(i)) % uint32(len(servers))
		a := r.askOne(ctx, servers[at], name, kind, tries-i)
		if a.cause == "" {
			if i > 0 {
				r.first.CompareAndSwap(first, at)
			}
			return a
		}
		if result = a; ctx.Err() != nil || a.cause == CauseServfail && i+1 >= len(servers) {
			break
		}
	}
	return result
}

// askOne asks one server, for a part of the time that is left.
func (r *resolver) askOne(ctx context.Context, server, name string, kind uint16, parts int) answer {
	if deadline, ok := ctx.Deadline(); ok && parts > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(parts))
		defer cancel()
	}
	m, err := r.dial.exchange(ctx, server, name, kind)
	var timeout net.Error
	switch {
	case err == nil:
		return readAnswer(m, name, kind)
	case errors.Is(err, errNoReply):
		return failed(CauseServfail)
	case ctx.Err() == context.Canceled:
		return answer{cause: CauseStopped}
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return failed(CauseTimeout)
	}
	return failed(CauseNetwork)
}
