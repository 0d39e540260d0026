// Package fleet shares lists between gates over NATS JetStream.
//
// A [Member] is a gate in a fleet. Its files are what counts on it, with or without the
// fleet. The fleet has, for each list, which version is current ([Version], in a key-value
// bucket) and its content (in an object store). A member writes the fleet's newer versions
// into its files, and publishes its own edits before it writes them, by compare-and-set. If
// the fleet has no version of a list, or an older one, the member publishes its own: a lost
// bucket never changes a list.
//
// Everything that comes from the fleet is treated as hostile: names, sizes and digests are
// checked before anything is written.
package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/atomicfile"
)

// The directories of a member in the state directory.
const (
	dirName   = "fleet"
	listsDir  = dirName + "/lists"
	stateDir  = dirName + "/state"
	workDir   = dirName + "/work"
	nameOfID  = "id"
	newFile   = ".new-*"
	maxRecord = 3 * maxValue
)

// Member is a gate in a fleet. It is safe for concurrent use.
type Member struct {
	*link
	*states
	leases *leases
	signs  *signs

	lists    map[string]*list // guarded by link.mu, as much of a list is
	listsSet atomic.Int64     // how often SetLists has changed the lists
	rewatch  bool             // the bucket of the lists was put back: the watches wait for what was in it; guarded by link.mu
}

// core is what all parts of a member use. It does not change.
type core struct {
	o    Options
	log  *slog.Logger
	tree atomicfile.Tree
	id   string // of the state directory
	run  string // of this process

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	counters counters
}

// counters count what has happened.
type counters struct {
	applied, published, conflicts, refused, panics, connects atomic.Int64
}

// Open returns a member that connects in the background. The error is about the options and
// the state directory, not about the fleet.
func Open(o Options) (*Member, error) {
	o.times = o.times.withDefaults()
	if o.Edges != nil {
		o.times.ahead = o.Edges.Ahead
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &core{o: o, log: o.Logger, tree: atomicfile.In(o.StateDir), run: randomID()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	m := &Member{lists: map[string]*list{}, link: &link{core: c, changed: make(chan struct{}), denied: map[string]bool{}, patience: minPatience}}
	m.lost = func() {
		for _, l := range m.lists {
			l.fresh = false // the fleet may change unnoticed
		}
	}
	m.states = &states{link: m.link, state: map[string]*shared{}, unused: map[string]bool{}, outdated: map[string]bool{}}
	m.leases = &leases{Member: m, held: map[string]*lease{}, abstains: map[string]time.Time{}}
	m.signs = &signs{Member: m}
	err := m.prepare()
	if err == nil {
		m.alive, m.cut = context.WithCancelCause(m.ctx)
		m.cut(errLost) // there is none yet
		err = m.connect()
	}
	if err != nil {
		m.cancel()
		return nil, fmt.Errorf("fleet: %w", err)
	}
	m.SetLists(o.Lists)
	m.keep("session", m.session)
	m.keep("rights", m.learnRights)
	m.keep("readers", (&desk{Member: m, shown: map[string]time.Time{}}).serve)
	m.keep("presence", m.signs.keepShowing)
	m.keep("leases", m.leases.keepAll)
	m.keep("cleaning", m.cleanUp)
	return m, nil
}

// prepare makes the directories, and reads what earlier processes have left.
func (m *Member) prepare() error {
	for _, dir := range []string{listsDir, stateDir, workDir} {
		if err := m.tree.MakeDirs(dir); err != nil {
			return err
		}
	}
	name := path.Join(dirName, nameOfID)
	if err := m.tree.WriteNew(name, dirName, newFile, []byte(randomID()+"\n")); err != nil {
		return err
	}
	id, err := m.tree.ReadFile(name, 100)
	if err != nil {
		return err
	}
	if m.id = strings.TrimSpace(string(id)); escaped(m.id) != m.id || m.id == "" {
		return fmt.Errorf("%s is damaged: remove it", m.tree.Path(name))
	}
	return m.loadState()
}

func randomID() string { return strings.ToLower(rand.Text()[:12]) }

// Close leaves the fleet: it gives leases back, closes the connection, and waits for the end
// of all goroutines.
func (m *Member) Close() {
	b, err := m.open()
	m.mu.Lock() // no question is answered from now on
	m.cancel()
	m.mu.Unlock()
	m.wg.Wait()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		m.leases.release(ctx, b)
		m.signs.remove(ctx, b)
	}
	m.nc.Close()
}

// SetLists sets which lists are shared.
func (m *Member) SetLists(lists []List) {
	wanted := map[string]List{}
	for _, l := range lists {
		wanted[l.Name] = l
	}
	var ended []*list
	m.mu.Lock()
	for name, l := range m.lists {
		if w, ok := wanted[name]; ok && w == l.List {
			delete(wanted, name)
			continue
		}
		l.cancel()
		delete(m.lists, name)
		ended = append(ended, l)
	}
	m.mu.Unlock()
	for _, l := range ended {
		<-l.done
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, w := range wanted {
		l := m.newList(w)
		m.lists[name] = l
		m.wg.Go(func() {
			defer close(l.done)
			m.repeat(l.ctx, "list "+name, l.run)
		})
	}
	m.listsSet.Add(1)
	m.notify()
}

// list returns a shared list.
func (m *Member) list(name string) (*list, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lists[name]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("list %s: %w", name, ErrNotShared)
}

// all returns the shared lists, sorted by name.
func (m *Member) all() (lists []*list) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.lists)) {
		lists = append(lists, m.lists[name])
	}
	return lists
}

// now returns the time by this gate's clock.
func (m *core) now() time.Time { return time.Now().Add(m.o.times.ahead).UTC() }

// notify wakes those who wait for a change. The caller has the lock.
func (m *link) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// wait waits until condition is true, which is called with the lock.
func (m *link) wait(ctx context.Context, condition func() bool) error {
	for {
		m.mu.Lock()
		ok, changed := condition(), m.changed
		m.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ctx.Done():
			return ErrClosed
		}
	}
}

// keep runs a loop until the member is closed. If it ends or panics it runs again after a
// pause: nothing here may end the gate.
func (m *core) keep(name string, loop func(context.Context) error) {
	m.wg.Go(func() { m.repeat(m.ctx, name, loop) })
}

func (m *core) repeat(ctx context.Context, name string, loop func(context.Context) error) {
	logged, pause := "", m.o.times.retry
	for ctx.Err() == nil {
		began := time.Now()
		err := m.try(ctx, name, loop)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			logged, pause = "", m.o.times.retry
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			m.log.Warn("the fleet does not work", "part", name, "error", err)
		}
		m.sleep(ctx, pause)
		pause = min(2*pause, 2*m.o.times.retry)
	}
}

// try runs a loop once. A panic is an error.
func (m *core) try(ctx context.Context, name string, loop func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.counters.panics.Add(1)
			m.log.Error("panic in the fleet", "part", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("panic: it begins again")
		}
	}()
	return loop(ctx)
}

// apart lets all that happens at the same instant of a simulation come first. Two lists do nothing at
// the same instant.
func (l *list) apart() {
	if l.m.o.Edges != nil {
		time.Sleep(time.Duration(1 + crc32.ChecksumIEEE([]byte(l.Name))%1000))
	}
}

// sleep waits for about d, so that several gates do not do the same at the same time.
func (c *core) sleep(ctx context.Context, d time.Duration) {
	about := d - d/4 + mathrand.N(d/2+1)
	if c.o.Edges != nil {
		about = c.o.Edges.Pause(d)
	}
	t := time.NewTimer(about)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
