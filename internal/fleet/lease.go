package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lease is the right to do what only one member may do at a time. It ends by itself if the
// member does not renew it.
type lease struct {
	revision uint64    // of its key; 0: another member may have it
	until    time.Time // it counts that long, by the own clock
}

// leases are those that the member has. It has the ones for lists that it is to fetch.
type leases struct {
	*Member
	mu       sync.Mutex
	held     map[string]*lease
	abstains map[string]time.Time // leases that are left to others until then
}

// cleaning is the key of the lease for removing contents that nobody needs.
const cleaning = "clean"

// keepAll takes leases that are free, and renews those that the member has. A member that only
// reads has none.
func (m *leases) keepAll(ctx context.Context) error {
	tick := time.NewTicker(m.o.times.lease / 4)
	defer tick.Stop()
	for {
		if b, err := m.open(); err == nil && m.mayWrite() {
			m.renewAll(ctx, b)
		}
		m.tellFetches()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// open returns the buckets, if they can be used now.
func (m *link) open() (*buckets, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.buckets == nil || !m.nc.IsConnected() {
		return nil, ErrOffline
	}
	return m.buckets, nil
}

// leaseKey returns the key of the lease for fetching a list.
func leaseKey(list string) string { return "fetch." + escaped(list) }

func (m *leases) renewAll(ctx context.Context, b *buckets) {
	ctx, cancel := context.WithTimeout(ctx, m.o.times.lease/4)
	defer cancel()
	keys := map[string]bool{cleaning: true}
	for _, l := range m.all() {
		if l.Kind != Fetched {
			continue
		}
		key := leaseKey(l.Name)
		if m.o.FetchFails != nil && m.holds(key) && m.o.FetchFails(l.Name) {
			m.log.Warn("this gate cannot fetch a list of the fleet, another one is to try", "list", l.Name)
			m.giveBack(ctx, b, key)
		}
		keys[key] = true
	}
	m.mu.Lock()
	for key := range m.held {
		if !keys[key] {
			delete(m.held, key) // it ends by itself
		}
	}
	for key, until := range m.abstains {
		if !keys[key] || time.Now().After(until) {
			delete(m.abstains, key)
		}
	}
	for key := range m.abstains {
		delete(keys, key)
	}
	m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		m.renew(ctx, b, key)
	}
}

// giveBack gives a lease back, and leaves it to other members for some time.
func (m *leases) giveBack(ctx context.Context, b *buckets, key string) {
	m.mu.Lock()
	l := m.held[key]
	delete(m.held, key)
	m.abstains[key] = time.Now().Add(m.o.times.abstain)
	m.mu.Unlock()
	if kv, err := b.leaseBucket(ctx); err == nil && l != nil {
		_ = kv.Delete(ctx, key, jetstream.LastRevision(l.revision)) // else it ends by itself
	}
}

// renew takes or renews a lease.
func (m *leases) renew(ctx context.Context, b *buckets, key string) {
	m.mu.Lock()
	l := m.held[key]
	m.mu.Unlock()
	kv, err := b.leaseBucket(ctx)
	if err != nil {
		return
	}
	now := time.Now()
	var revision uint64
	holder := []byte(fmt.Sprintf("%s %s", m.o.Name, m.run))
	if l == nil {
		revision, err = kv.Create(ctx, key, holder)
	} else {
		revision, err = kv.Update(ctx, key, holder, l.revision)
	}
	b.closeSide(bucketLeases, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.held[key] = &lease{revision, now.Add(m.o.times.lease * 3 / 4)}
	case l != nil && errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		delete(m.held, key)
	case l != nil && now.After(l.until):
		delete(m.held, key)
	}
}

// holds reports whether the member has a lease.
func (m *leases) holds(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.held[key]
	return l != nil && time.Now().Before(l.until)
}

// Fetches reports whether this member is to fetch a list from its URL: it has the lease, or
// cannot reach the fleet.
func (m *Member) Fetches(list string) bool {
	if _, err := m.open(); err != nil {
		return true
	}
	return m.leases.holds(leaseKey(list))
}

// tellFetches calls FetchesChanged for lists that this member begins or ceases to fetch.
func (m *leases) tellFetches() {
	for _, l := range m.all() {
		if l.Kind != Fetched || m.o.FetchesChanged == nil {
			continue
		}
		current := m.Fetches(l.Name)
		told := l.fetches == nil || *l.fetches != current
		l.fetches = &current
		if told {
			m.o.FetchesChanged(l.Name, current)
		}
	}
}

// release gives all leases back, so that others need not wait for their end.
func (m *leases) release(ctx context.Context, b *buckets) {
	m.mu.Lock()
	held := m.held
	m.held = map[string]*lease{}
	m.mu.Unlock()
	if len(held) == 0 {
		return
	}
	if kv, err := b.leaseBucket(ctx); err == nil {
		for _, key := range slices.Sorted(maps.Keys(held)) {
			_ = kv.Delete(ctx, key, jetstream.LastRevision(held[key].revision)) // else it ends by itself
		}
	}
}
