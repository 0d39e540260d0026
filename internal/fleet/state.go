package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Shared values are small: pins, accepted contents, ended sessions. Each is a key with a
// sequence, which counts as that of a list does: a missing or older key never changes
// anything.

// shared is a shared value, as the fleet and the disk have it.
type shared struct {
	Format   int             `json:"format"`
	Key      string          `json:"key,omitempty"` // that it is of; older versions do not write it
	Sequence uint64          `json:"sequence"`
	Time     time.Time       `json:"time"`
	Member   string          `json:"member"`
	Value    json.RawMessage `json:"value"`

	revision uint64
}

// states are the shared values.
type states struct {
	*link
	stateMu sync.Mutex // held while a value is compared and noted, and while StateChanged runs; before all other locks here
	logged  time.Time  // when it was last logged that a value is not used; guarded by stateMu

	valueMu  sync.Mutex // guards what follows; last
	state    map[string]*shared
	unused   map[string]bool // keys of values that StateChanged did not take
	outdated map[string]bool // keys of which the fleet has an older value
}

const (
	maxShared = 64 << 10 // of a value, in bytes
	maxKeys   = 10_000
	maxState  = 16 << 20 // of all values
)

// StateKey returns the key of a shared value: what it is ("pin", "accept", "ended"), and of
// which list or user.
func StateKey(what, name string) string { return escaped(what) + "." + escaped(name) }

// maxStateKey bounds a key, which is also the name of a file, in bytes.
const maxStateKey = 240

// ParseStateKey is the reverse of StateKey.
func ParseStateKey(key string) (what, name string, ok bool) {
	a, b, found := strings.Cut(key, ".")
	what, okWhat := unescaped(a)
	name, okOf := unescaped(b)
	return what, name, found && okWhat && okOf && what != "" && name != "" && len(key) <= maxStateKey
}

// parseShared parses the value of a key. That of another key, which somebody has copied, is none.
func parseShared(key string, value []byte) (*shared, error) {
	s := new(shared)
	if len(value) > maxShared+4<<10 {
		return nil, errors.New("it is too long")
	}
	if err := json.Unmarshal(value, s); err != nil {
		return nil, err
	}
	switch {
	case s.Format > versionFormat:
		return nil, errNewer
	case s.Format != versionFormat || s.Sequence < 1 || s.Sequence > maxSequence || len(s.Value) > maxShared:
		return nil, errors.New("it is invalid")
	case s.Key != "" && s.Key != key:
		return nil, errors.New("it is the value of another key")
	}
	s.Member = shortened(s.Member)
	return s, nil
}

// loadState reads the shared values that earlier processes have known.
func (m *states) loadState() error {
	entries, err := m.tree.ReadDir(stateDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ".json")
		if _, _, valid := ParseStateKey(key); !ok || !valid || len(m.state) >= maxKeys {
			continue
		}
		text, err := m.tree.ReadFile(path.Join(stateDir, e.Name()), maxRecord)
		if err != nil {
			return err
		}
		if s, err := parseShared(key, text); err == nil {
			m.state[key] = s
		}
	}
	return nil
}

// State returns a shared value; nil if there is none.
func (m *states) State(key string) json.RawMessage {
	m.valueMu.Lock()
	defer m.valueMu.Unlock()
	if s := m.state[key]; s != nil {
		return s.Value
	}
	return nil
}

// States returns the shared values about something, by what they are of: see [StateKey].
func (m *states) States(what string) map[string]json.RawMessage {
	m.valueMu.Lock()
	defer m.valueMu.Unlock()
	all := map[string]json.RawMessage{}
	for key, s := range m.state {
		if is, name, _ := ParseStateKey(key); is == what {
			all[name] = s.Value
		}
	}
	return all
}

// SetState changes a shared value on all gates: change gets the present one (nil: none), and
// may be called again if another gate is faster.
func (m *states) SetState(ctx context.Context, key string, change func(old json.RawMessage) (json.RawMessage, error)) error {
	if _, _, ok := ParseStateKey(key); !ok {
		return fmt.Errorf("%q is not a key of the fleet's state", key)
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.times.edit)
	defer cancel()
	return m.onLink(ctx, func(ctx context.Context) error { return m.setState(ctx, key, change) })
}

func (m *states) setState(ctx context.Context, key string, change func(old json.RawMessage) (json.RawMessage, error)) error {
	for {
		b, err := m.reach(ctx)
		if err == nil {
			err = m.onlyReads(ctx)
		}
		if err != nil {
			return err
		}
		theirs, err := m.refreshState(ctx, b, key)
		if errors.Is(err, errNewer) {
			return fmt.Errorf("the value %s: %w", key, err)
		}
		if err != nil {
			return m.offline(err)
		}
		err = m.trySet(ctx, b, key, theirs, change)
		if !errors.Is(err, ErrBehind) {
			return err
		}
		m.sleep(ctx, m.o.times.retry/20)
	}
}

// trySet changes the value that refreshState has returned.
func (m *states) trySet(ctx context.Context, b *buckets, key string, theirs *shared, change func(old json.RawMessage) (json.RawMessage, error)) error {
	before := m.known(key)
	if before == nil || theirs.counts(before) { // this gate does not need their value, or could not use it
		before = theirs
	}
	next := &shared{Format: versionFormat, Sequence: before.Sequence + 1, Time: m.now(), Member: m.o.Name, revision: theirs.revision}
	var old json.RawMessage
	if before.Sequence > 0 {
		old = before.Value
	}
	var err error
	if next.Value, err = change(old); err != nil {
		return err
	}
	if len(next.Value) > maxShared {
		return fmt.Errorf("%s would have %d bytes, more than %d", key, len(next.Value), maxShared)
	}
	return m.putState(ctx, b, key, next)
}

// putState writes a value to the fleet if its key still has the revision, and notes it.
func (m *states) putState(ctx context.Context, b *buckets, key string, s *shared) error {
	s.Key = key
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	revision, err := b.state.Update(ctx, key, value, s.revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return ErrBehind
	}
	if err != nil {
		return m.offline(err)
	}
	m.say(key, revision)
	s.revision = revision
	m.stateMu.Lock()
	defer m.stateMu.Unlock()
	if own := m.known(key); own != nil && own.counts(s) {
		return nil // another gate was faster to change it again
	}
	return m.noteState(key, s)
}

// known returns what the gate knows of a value; nil if there is none.
func (m *states) known(key string) *shared {
	m.valueMu.Lock()
	defer m.valueMu.Unlock()
	return m.state[key]
}

func (m *states) noteState(key string, s *shared) error {
	m.valueMu.Lock()
	m.state[key] = s
	m.valueMu.Unlock()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return m.tree.WriteFile(path.Join(stateDir, key+".json"), stateDir, newFile, append(text, '\n'))
}

// refreshState reads a value from the fleet. If that has none, or a damaged one, the sequence is 0.
func (m *states) refreshState(ctx context.Context, b *buckets, key string) (*shared, error) {
	value, revision, err := b.last(ctx, bucketState, key)
	if err != nil || value == nil {
		return &shared{revision: revision}, err
	}
	m.observeState(key, value, revision)
	theirs, err := parseNext(key, value, m.known(key))
	if errors.Is(err, errNewer) {
		return nil, err
	}
	if err != nil {
		theirs = new(shared)
	}
	theirs.revision = revision
	return theirs, nil
}

// parseNext parses a value of a key that may follow own, which is nil if there is none.
func parseNext(key string, value []byte, own *shared) (*shared, error) {
	s, err := parseShared(key, value)
	known := uint64(0)
	if own != nil {
		known = own.Sequence
	}
	if err == nil && s.Sequence > known+maxJump { // somebody wants to use the numbers up
		return nil, fmt.Errorf("it has the sequence %d, and this gate has %d", s.Sequence, known)
	}
	return s, err
}

// observeState notes a value of the fleet, if it is newer than the own one.
func (m *states) observeState(key string, value []byte, revision uint64) {
	if _, _, ok := ParseStateKey(key); !ok {
		return
	}
	m.stateMu.Lock()
	defer m.stateMu.Unlock()
	m.valueMu.Lock()
	own, full := m.state[key], m.stateFull(len(value))
	delete(m.unused, key)
	m.valueMu.Unlock()
	s, err := parseNext(key, value, own)
	damaged := err != nil && !errors.Is(err, errNewer)
	if err == nil && own == nil && full {
		err = fmt.Errorf("there are more than %d values, or %d bytes", maxKeys, maxState)
	}
	if err != nil {
		m.valueMu.Lock()
		if own != nil {
			m.outdated[key] = damaged
		}
		m.valueMu.Unlock()
		m.sayUnused(key, err)
		return
	}
	s.revision = revision
	if own != nil && !s.counts(own) {
		mine := *own
		mine.revision = revision
		m.valueMu.Lock()
		m.state[key] = &mine
		m.outdated[key] = own.counts(s)
		m.valueMu.Unlock()
		return
	}
	if m.o.StateChanged != nil {
		err := m.o.StateChanged(key, s.Value)
		if errors.Is(err, ErrNotShared) {
			return
		}
		if err != nil {
			m.sayUnused(key, err)
			m.valueMu.Lock()
			m.unused[key] = true
			m.valueMu.Unlock()
			return
		}
	}
	if err := m.noteState(key, s); err != nil {
		m.log.Warn("a value of the fleet's state is not noted", "key", key, "error", err)
	}
}

// stateFull reports whether a further value of n bytes would be too much. The caller has the
// lock.
func (m *states) stateFull(n int) bool {
	for _, s := range m.state {
		n += len(s.Value)
	}
	return n > maxState || len(m.state) >= maxKeys
}

// sayUnused logs that a value is not used, for one of many at most.
func (m *states) sayUnused(key string, err error) {
	if time.Since(m.logged) > time.Minute {
		m.logged = time.Now()
		m.log.Warn("a value of the fleet's state is not used", "key", key, "error", err)
	}
}

// counts reports whether s is to replace own.
func (s *shared) counts(own *shared) bool {
	by := cmp.Or(cmp.Compare(s.Sequence, own.Sequence), s.Time.Compare(own.Time), strings.Compare(string(s.Value), string(own.Value)))
	return by > 0
}

// resyncState reads the values that StateChanged did not take, and writes those of which the fleet
// has an older one; if wanted it looks at all, and also writes those that the fleet has lost.
func (m *states) resyncState(ctx context.Context, b *buckets, all bool) error {
	m.valueMu.Lock()
	keys := slices.Sorted(maps.Keys(m.state))
	unused := slices.Sorted(maps.Keys(m.unused))
	if !all {
		keys = slices.DeleteFunc(keys, func(key string) bool { return !m.outdated[key] })
	}
	m.valueMu.Unlock()
	for _, key := range unused {
		if _, err := m.refreshState(ctx, b, key); err != nil && !errors.Is(err, errNewer) {
			return fmt.Errorf("the value %s: %w", key, err)
		}
	}
	for _, key := range keys {
		if err := m.mendState(ctx, b, key); err != nil {
			return fmt.Errorf("the value %s: %w", key, err)
		}
	}
	return nil
}

// mendState writes an own value to the fleet if that has none, or an older one.
func (m *states) mendState(ctx context.Context, b *buckets, key string) error {
	value, revision, err := b.last(ctx, bucketState, key)
	if err != nil {
		return err
	}
	again := *m.known(key)
	if value != nil {
		m.observeState(key, value, revision)
		s, err := parseNext(key, value, &again)
		if errors.Is(err, errNewer) || err == nil && (s.counts(&again) || !again.counts(s)) {
			return nil
		}
	}
	again.revision = revision
	if err = m.onlyReads(ctx); err == nil {
		err = m.putState(ctx, b, key, &again)
	}
	m.valueMu.Lock()
	m.outdated[key] = errors.Is(err, ErrBehind) // another gate has written meanwhile, perhaps an older one
	m.valueMu.Unlock()
	if errors.Is(err, ErrBehind) || errors.Is(err, ErrReadOnly) {
		return nil
	}
	return err
}
