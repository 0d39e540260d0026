package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Presence is the sign of life of a member.
type Presence struct {
	Name     string    `json:"name"`
	Instance string    `json:"instance"` // of the state directory
	Run      string    `json:"run"`      // of the process
	Version  string    `json:"version"`  // of the program
	Time     time.Time `json:"time"`     // by the member's clock

	Lists  []ListStatus    `json:"lists,omitempty"`
	Report json.RawMessage `json:"report,omitempty"`

	// ReadOnly says that the member's credentials do not permit changes.
	ReadOnly bool `json:"read_only,omitempty"`

	// Clash says that another process uses the name and the state directory, or a copy of it.
	Clash string `json:"clash,omitempty"`

	// Twins is how many others show themselves by the same name: see Members.
	Twins int `json:"twins,omitempty"`

	Seen  time.Time     `json:"seen"`            // by the servers' clock
	Clock time.Duration `json:"clock,omitempty"` // how far the member's clock is ahead of the servers'
}

// ListStatus is the state of a list on a member.
type ListStatus struct {
	Name     string `json:"name"`
	Sequence uint64 `json:"sequence,omitempty"` // 0: it never had a version of the fleet
	SHA256   string `json:"sha256,omitempty"`
	Behind   bool   `json:"behind,omitempty"` // the fleet has another version, as far as the member knows
	Error    string `json:"error,omitempty"`
	Fetches  bool   `json:"fetches,omitempty"`
}

// maxReport bounds Options.Report, in bytes.
const maxReport = 16 << 10

// signs are the signs of life: the own one, and what the others' and other processes' say.
type signs struct {
	*Member
	revision uint64 // of the own one; used by one goroutine
	alone    int    // signs of life since another process wrote its own; used by the same

	mu      sync.Mutex
	clash   string    // who else uses the name
	flooded time.Time // when there was too much in the members' bucket
}

// key returns the key of the sign of life. Two members with one name have two keys.
func (m *signs) key() string { return escaped(m.o.Name) + "." + m.id }

// keepShowing writes a sign of life now and then.
func (m *signs) keepShowing(ctx context.Context) error {
	tick := time.NewTicker(m.o.times.presence)
	defer tick.Stop()
	for {
		if b, err := m.open(); err == nil {
			m.show(ctx, b)
		} else if m.wait(ctx, func() bool { return m.buckets != nil && m.nc.IsConnected() }) == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// show writes the sign of life, by compare-and-set: another process with the same name and
// state directory shows by it.
func (m *signs) show(ctx context.Context, b *buckets) {
	ctx, cancel := context.WithTimeout(ctx, m.o.times.presence)
	defer cancel()
	p := m.own()
	value, err := json.Marshal(p)
	if err != nil || len(value) > maxValue {
		p.Lists, p.Report = nil, nil
		value, _ = json.Marshal(p)
	}
	if b.reads != nil {
		_ = b.reads.show(ctx, askAlive, value) // else it is shown later
		return
	}
	kv, err := b.members(ctx)
	if err != nil {
		return
	}
	revision, err := m.put(ctx, kv, value)
	b.closeSide(bucketMembers, err)
	if err != nil {
		return
	}
	m.revision = revision
	if !m.mayWrite() { // a reader must not read what it writes
		return
	}
	brief, stop := m.brief(ctx)
	defer stop()
	entry, err := kv.Get(brief, m.key())
	if err == nil && entry.Revision() == revision {
		m.link.mu.Lock()
		m.clock = entry.Created().Sub(p.Time)
		m.link.mu.Unlock()
	}
}

func (m *signs) put(ctx context.Context, kv jetstream.KeyValue, value []byte) (uint64, error) {
	key := m.key()
	if m.revision == 0 { // what an earlier process of this gate has left
		return kv.Put(ctx, key, value)
	}
	revision, err := kv.Update(ctx, key, value, m.revision)
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		if m.alone++; err == nil && m.alone > 2 { // another process with the key would have written since
			m.noteClash("")
		}
		return revision, err
	}
	m.alone = 0
	if !m.mayWrite() { // it may have expired; a reader must not read what it writes
		return kv.Put(ctx, key, value)
	}
	entry, err := kv.Get(ctx, key)
	var other Presence
	clash := ""
	if err == nil && json.Unmarshal(entry.Value(), &other) == nil && other.Run != m.run {
		clash = "another process uses this gate's name and a copy of its state directory"
	}
	m.noteClash(clash)
	if clash != "" {
		m.log.Error("two gates have one name and one state directory", "name", m.o.Name)
	}
	return kv.Put(ctx, key, value)
}

// noteClash notes which other process uses the key of this one; "": none does.
func (m *signs) noteClash(clash string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clash = clash
}

func (m *signs) own() *Presence {
	p := &Presence{Name: m.o.Name, Instance: m.id, Run: m.run, Version: m.o.Version, Time: m.now(), Lists: m.listStatus()}
	m.mu.Lock()
	p.Clash = m.clash
	m.mu.Unlock()
	m.link.mu.Lock()
	p.ReadOnly = m.readOnly != nil
	m.link.mu.Unlock()
	if m.o.Report != nil {
		if report := m.o.Report(); len(report) <= maxReport && json.Valid(report) {
			p.Report = report
		}
	}
	return p
}

// remove removes the sign of life.
func (m *signs) remove(ctx context.Context, b *buckets) {
	if b.reads != nil {
		if sign, err := json.Marshal(m.own()); err == nil {
			_ = b.reads.show(ctx, askGone, sign) // else it ends by itself
		}
	} else if kv, err := b.members(ctx); err == nil {
		_ = kv.Delete(ctx, m.key())
	}
}

// listStatus returns the state of the lists, sorted by name.
func (m *Member) listStatus() (all []ListStatus) {
	for _, l := range m.all() {
		fetches := l.Kind == Fetched && m.Fetches(l.Name)
		m.mu.Lock()
		s := ListStatus{Name: l.Name, Fetches: fetches}
		if a := l.applied; a != nil {
			s.Sequence, s.SHA256 = a.Version.Sequence, a.Version.SHA256
		}
		if r := l.remote; r != nil && r.version != nil {
			s.Behind = s.Sequence != r.version.Sequence || s.SHA256 != r.version.SHA256
		}
		if l.err != nil {
			s.Error = shortened(l.err.Error())
		}
		m.mu.Unlock()
		all = append(all, s)
	}
	return all
}
