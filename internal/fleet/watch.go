package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// session opens the buckets and follows them, until something is wrong with them.
func (m *Member) session(ctx context.Context) error {
	if err := m.wait(ctx, m.isLinked); err != nil {
		return err
	}
	b, err := m.openInTime(ctx)
	if err != nil && m.onlyAsks() {
		return m.readSession(ctx)
	}
	if err != nil {
		err = m.explained(err)
		m.setBuckets(nil, err)
		m.goElsewhere()
		return err
	}
	m.setBuckets(b, nil)
	defer func() {
		m.setBuckets(nil, err)
		if err != nil {
			m.goElsewhere()
		}
	}()
	err = m.followBuckets(ctx, b)
	return err
}

// openInTime is openBuckets until the connection is lost, or the server has not permitted it.
func (m *link) openInTime(ctx context.Context) (*buckets, error) {
	linked := m.whileLinked(ctx)
	defer linked.end()
	opening, stop := context.WithTimeout(linked, 2*m.o.times.edit)
	defer stop()
	m.wg.Go(func() {
		_ = m.wait(opening, func() bool { return m.asks })
		stop()
	})
	b, err := m.openBuckets(opening)
	return b, linked.lost(err)
}

// minPatience and maxPatience are after how many failures a member tries another server.
const (
	minPatience = 3
	maxPatience = 96
)

// goElsewhere connects to another server if the one that is used has failed repeatedly: it may be
// cut off from the others, or its JetStream may not work.
func (m *link) goElsewhere() {
	if m.failures++; m.failures < m.patience || len(m.nc.Servers()) < 2 {
		return
	}
	m.failures, m.patience = 0, min(2*m.patience, maxPatience)
	_ = m.nc.ForceReconnect() // an error says that there is no connection to leave
}

// setBuckets notes the open buckets, or why there are none.
func (m *link) setBuckets(b *buckets, trouble error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buckets = b
	m.setTrouble(trouble)
	m.notify()
}

// setTrouble notes why the fleet cannot be used; nil: it can. The caller has the lock.
func (m *link) setTrouble(err error) {
	m.trouble = err
	switch {
	case err == nil:
		m.down = time.Time{}
	case m.down.IsZero():
		m.down = time.Now()
	}
}

// followBuckets watches the buckets.
func (m *Member) followBuckets(ctx context.Context, b *buckets) error {
	for {
		if err := m.wait(ctx, m.isLinked); err != nil {
			return err
		}
		linked := m.whileLinked(ctx)
		again, err := m.followOnce(linked, b)
		again = again || linked.isLost()
		linked.end()
		if !again {
			return err
		}
	}
}

// followOnce watches the buckets until other watches are needed. Ctx ends with the connection:
// then the servers may have forgotten the watches, which would wait for some seconds.
func (m *Member) followOnce(ctx context.Context, b *buckets) (again bool, err error) {
	watched := m.listsSet.Load()
	lists, end, err := m.openWatch(ctx, func(ctx context.Context) (jetstream.KeyWatcher, error) {
		return b.lists.WatchFiltered(ctx, m.listKeys())
	})
	if err != nil {
		return false, fmt.Errorf("watching the lists: %w", err)
	}
	defer end()
	state, end, err := m.openWatch(ctx, func(ctx context.Context) (jetstream.KeyWatcher, error) { return b.state.WatchAll(ctx) })
	if err != nil {
		return false, fmt.Errorf("watching the state: %w", err)
	}
	defer end()
	next := time.NewTimer(time.Millisecond) // first what the watches bring at once
	defer next.Stop()
	deaf := make(chan struct{}, 1)
	hints, err := m.hear(deaf)
	if err != nil {
		return false, err
	}
	defer func() { _ = hints.Unsubscribe() }()
	all, failures := true, 0
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		if m.listsSet.Load() != watched {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case e, ok := <-lists.Updates():
			if !ok {
				return false, errors.New("the watch of the lists has ended")
			}
			if e != nil {
				m.deliver(e)
			}
		case e, ok := <-state.Updates():
			if !ok {
				return false, errors.New("the watch of the state has ended")
			}
			if e != nil && e.Operation() == jetstream.KeyValuePut {
				m.observeState(e.Key(), e.Value(), e.Revision())
			}
		case <-changed:
		case <-deaf:
			return true, nil
		case <-next.C:
			next.Reset(m.o.times.resync)
			err := m.resync(ctx, b, all)
			if err == nil {
				all, failures = false, 0
				m.failures, m.patience = 0, minPatience
				continue
			}
			if failures++; failures == maxFailures || !errors.Is(err, context.DeadlineExceeded) {
				return false, err
			}
			next.Reset(m.o.times.retry) // the servers may only be slow
		}
	}
}

// maxFailures is how often servers may not answer in time before all is opened again.
const maxFailures = 3

// listKeys returns the keys of the shared lists. All keys of the bucket may be very many.
func (m *Member) listKeys() []string {
	keys := []string{probeKey} // all keys would be watched without one
	for _, l := range m.all() {
		keys = append(keys, l.key)
	}
	return keys
}

// openWatch opens a watch, until end. A watch ends with its context, and without a deadline it
// would wait for ever for servers that have no leader: they do not answer.
func (m *link) openWatch(ctx context.Context, open func(context.Context) (jetstream.KeyWatcher, error)) (w jetstream.KeyWatcher, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(m.o.times.edit, cancel)
	w, err = open(ctx)
	if !late.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return w, func() {
		stop(w)
		cancel()
	}, nil
}

// stop ends a watch, and reads what is left so that the library's goroutines end.
func stop(w jetstream.KeyWatcher) {
	_ = w.Stop() // without a connection the server removes the consumer
	timeout := time.After(time.Second)
	for {
		select {
		case _, ok := <-w.Updates():
			if !ok {
				return
			}
		case <-timeout:
			return
		}
	}
}

// deliver passes a change of a key to its list.
func (m *Member) deliver(e jetstream.KeyValueEntry) {
	for _, l := range m.all() {
		if l.key != e.Key() {
			continue
		}
		value := e.Value()
		if e.Operation() != jetstream.KeyValuePut {
			value = nil
		}
		l.observe(value, e.Revision(), nil)
	}
}

// resync reads the keys of all lists, and if wanted all shared values: a watch may have missed
// something, above all if the bucket is another one than before.
func (m *Member) resync(ctx context.Context, b *buckets, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, 4*m.o.times.edit)
	defer cancel()
	created, err := b.identities(ctx)
	if err != nil {
		return err
	}
	for name, t := range created {
		if !t.Equal(b.created[name]) {
			return fmt.Errorf("the stream %s is another one", name)
		}
	}
	for _, l := range m.all() {
		if err := l.refreshBriefly(ctx, b); err != nil {
			return fmt.Errorf("reading list %s: %w", l.Name, err)
		}
	}
	m.mu.Lock()
	rewatch := m.rewatch
	m.rewatch = false
	m.mu.Unlock()
	if rewatch {
		return errors.New("an earlier state of the lists was put back")
	}
	return m.resyncState(ctx, b, all)
}
