package nexthop

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// prober is a Target that can be asked whether it would take mail, without
// sending any. The error says why not.
type prober interface {
	Probe(ctx context.Context) error
}

// clock is the time as a Group sees it.
type clock struct {
	now   func() time.Time
	after func(d time.Duration, f func()) (stop func() bool) // f runs in a goroutine of its own
	part  func() float64                                     // random, from 0 up to 1
}

// orReal fills in the real time.
func (c clock) orReal() clock {
	if c.now == nil {
		c.now = time.Now
	}
	if c.after == nil {
		c.after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if c.part == nil {
		c.part = rand.Float64
	}
	return c
}

// member is a Target of a Group, and what is known of its health.
type member struct {
	Target
	group *Group

	asking atomic.Int32 // clients whose first command it is being asked now

	mu       sync.Mutex
	failures int         // in a row; 0 is up
	retryAt  time.Time   // when it may be tried again
	stop     func() bool // the timer of the next probe
	closed   bool
}

// onPath puts the gates behind the member on the group's path while ask asks it.
func (m *member) onPath(ask func()) {
	m.asking.Add(1)
	defer m.asking.Add(-1)
	ask()
}

// up reports whether the member has not failed since it last answered.
func (m *member) up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failures == 0
}

// ready reports whether a client's command may go to the member though others
// are up: it is up itself, or its back-off has run out and nothing but a command
// can show whether it is back.
func (m *member) ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures == 0 {
		return true
	}
	_, probed := m.Target.(prober)
	return !probed && !m.group.config.clock.now().Before(m.retryAt)
}

// succeeded notes that the member has answered.
func (m *member) succeeded() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures == 0 {
		return
	}
	m.failures = 0
	m.cancelProbe()
	m.group.log.Info("next hop is back", "next_hop", m.String())
}

// failed notes that the member has not answered, and leaves it alone for a
// while. What fails before that while is over was begun before it, or for want
// of another member, and makes it no longer.
func (m *member) failed(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.group.config.clock.now()
	if m.failures > 0 && now.Before(m.retryAt) {
		return
	}
	m.failures++
	wait := m.backoff()
	m.retryAt = now.Add(wait)
	if m.failures == 1 {
		m.group.log.Warn("next hop is down", "next_hop", m.String(), "error", cause, "retry_in", wait)
	} else {
		m.group.log.Debug("next hop is still down", "next_hop", m.String(), "error", cause, "retry_in", wait)
	}
	m.probeAfter(wait)
}

// backoff is how long to wait after the latest failure. The random part keeps
// several gates from coming back at once.
func (m *member) backoff() time.Duration {
	config := &m.group.config
	wait := config.BackoffMin
	for i := 1; i < m.failures && wait < config.BackoffMax; i++ {
		wait *= 2
	}
	wait = min(wait, config.BackoffMax)
	return wait - time.Duration(config.clock.part()*float64(wait/4))
}

// watch begins with a first probe.
func (m *member) watch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probeAfter(0)
}

// unwatch ends the probes; one that is under way ends with the group's context.
func (m *member) unwatch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.cancelProbe()
}

// probeAfter has the member probed in a while, in place of a probe that waits
// already. The caller holds m.mu.
func (m *member) probeAfter(wait time.Duration) {
	p, ok := m.Target.(prober)
	if !ok || m.closed {
		return
	}
	m.cancelProbe()
	m.group.probes.Add(1)
	m.stop = m.group.config.clock.after(wait, func() {
		defer m.group.probes.Done()
		m.probe(p)
	})
}

// cancelProbe stops the timer. The caller holds m.mu.
func (m *member) cancelProbe() {
	if m.stop != nil && m.stop() {
		m.group.probes.Done()
	}
	m.stop = nil
}

// probe asks the member itself.
func (m *member) probe(p prober) {
	err := p.Probe(m.group.ctx)
	switch {
	case m.group.ctx.Err() != nil:
	case err != nil:
		m.failed(err)
	default:
		m.succeeded()
	}
}
