package fleet

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// A gate may have credentials that only permit reading. It finds that out on each connection, by
// one attempt that is refused, and then tries nothing else that needs more: servers log each
// attempt, as if somebody wanted to break in.

// probeKey is a key that nobody writes.
const probeKey = "probe"

// learnRights finds out on each connection whether the member may change lists.
func (m *link) learnRights(ctx context.Context) error {
	for {
		var b *buckets
		err := m.wait(ctx, func() bool {
			b = m.buckets
			return b != nil && m.isLinked() && !m.knowsRights()
		})
		if err != nil {
			return nil // the member is closed
		}
		m.probe(ctx, b)
		m.mu.Lock()
		known := m.knowsRights()
		m.mu.Unlock()
		if !known {
			m.sleep(ctx, m.o.times.resync)
		}
	}
}

// probe tries what never succeeds, but is permitted or not. If it is not, asyncError gets the
// answer, and the library would wait for another one: the next connection's probe would be late.
func (m *link) probe(ctx context.Context, b *buckets) {
	linked := m.whileLinked(ctx)
	defer linked.end()
	ctx, cancel := m.brief(linked)
	defer cancel()
	m.wg.Go(func() {
		_ = m.wait(ctx, m.knowsRights)
		cancel()
	})
	_, err := b.lists.Update(ctx, probeKey, nil, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	answered := errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.As(err, new(*jetstream.APIError))
	if answered && m.alive == linked.link {
		m.writer = true
		m.notify()
	}
}

// knowsRights reports whether it is known whether the member may change lists. The caller has the
// lock.
func (m *link) knowsRights() bool { return m.writer || m.readOnly != nil }

// onlyAsks reports whether the credentials do not even permit reading from JetStream, so that the
// member asks other gates.
func (m *link) onlyAsks() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asks
}

// mayWrite reports whether the member is known to be permitted to change lists.
func (m *link) mayWrite() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writer && m.readOnly == nil
}

// onlyReads returns an ErrReadOnly if the credentials only permit reading. While that is not known
// yet, it waits for a short time, and then lets the server decide.
func (m *link) onlyReads(ctx context.Context) error {
	ctx, cancel := m.brief(ctx)
	defer cancel()
	_ = m.wait(ctx, m.knowsRights)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mayOnlyRead() != nil {
		return ErrReadOnly
	}
	return nil
}

// errAsked says that the gate only read on the last connection, and does not know yet what it may on
// this one.
var errAsked = errors.New("it could only ask other gates")

// mayOnlyRead returns why the gate must not try to change anything; nil if nothing is known. The caller
// has the lock.
func (m *link) mayOnlyRead() error {
	if m.readOnly == nil && m.buckets != nil && m.buckets.reads != nil {
		return errAsked
	}
	return m.readOnly
}
