package nexthop

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// prober is a Target that can be asked whether it accepts mail, without sending any.
// The error says why not.
type prober interface {
	Probe(ctx context.Context) error
}

// clock is the time of a Group.
type clock struct {
	now   func() time.Time
	after func(d time.Duration, f func()) (stop func() bool) // f runs in a goroutine of its own
	part  func() float64                                     // random, from 0 up to 1
}

// withDefaults fills in the real time.
func (c clock) withDefaults() clock {
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

// member is a Target of a Group, with its health.
type member struct {
	Target
	group *Group

	asking atomic.Int32 // clients whose first command it has now

	mu       sync.Mutex
	failures int         // in a row; 0 is up
	retryAt  time.Time   // the end of the back-off
	stop     func() bool // the timer of the next probe
	closed   bool
}

// onPath calls ask with the gates after the member on the group's path.
func (m *member) onPath(ask func()) {
	m.asking.Add(1)
	defer m.asking.Add(-1)
	ask()
}

// up reports whether the member has not failed since its last answer.
func (m *member) up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failures == 0
}

// ready reports whether a client's command may go to the member while others are up:
// it is up itself, or its back-off is over and it cannot be probed.
func (m *member) ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures == 0 {
		return true
	}
	_, probed := m.Target.(prober)
	return !probed && !m.group.config.clock.now().Before(m.retryAt)
}

// succeeded notes an answer of the member.
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

// failed notes a failure of the member, and begins its back-off. Failures during the
// back-off belong to earlier attempts, or to attempts without another member: they do
// not prolong it.
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

// backoff returns the wait after the latest failure. The random part keeps several
// gates from coming back at once.
func (m *member) backoff() time.Duration {
	config := &m.group.config
	wait := config.BackoffMin
	for i := 1; i < m.failures && wait < config.BackoffMax; i++ {
		wait *= 2
	}
	wait = min(wait, config.BackoffMax)
	return wait - time.Duration(config.clock.part()*float64(wait/4))
}

// watch starts the first probe.
func (m *member) watch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probeAfter(0)
}

// unwatch ends the probes. One that is under way ends with the group's context.
func (m *member) unwatch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.cancelProbe()
}

// probeAfter schedules a probe, in place of one that is scheduled already. The caller
// holds m.mu.
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

// probe probes the member.
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
