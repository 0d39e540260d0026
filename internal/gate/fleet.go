package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/fetch"
	"spamgate/internal/fleet"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
)

const (
	// fleetDir is the directory in the state directory whose lock belongs to the process that
	// is the member: in a handover the new one waits for the end of the old one.
	fleetDir = "fleet"

	fleetLockPoll = 20 * time.Millisecond
	fleetRetry    = 5 * time.Second

	// fleetWait bounds how long an edit waits until the gate has joined the fleet after its
	// start.
	fleetWait = 5 * time.Second

	// fetchGrace is how long a gate that has just started waits to hear who fetches a list.
	fetchGrace = 10 * time.Second
)

// Why the gate is not a member now. Use errors.Is.
var (
	errLeft    = errors.New("this gate has left the fleet: spamgate fleet join brings it back")
	errJoining = errors.New("this gate has not joined the fleet yet")
)

// fleetPart is the gate's place in a fleet: a member, while [fleet] is configured and no other
// process of the gate is the member. It implements managed.Fleet.
type fleetPart struct {
	log     *slog.Logger
	tree    atomicfile.Tree
	config  func() *config.Config // in use
	problem func() string         // why mail cannot pass; "" if it can
	started time.Time             // the gate
	*lists
	history  *history
	accounts *accounts.Store

	pins    *fleetPins
	sources *fleetSources
	matches *fleetHits

	changing sync.Mutex // held while it is configured or closed
	closed   bool
	unlock   func()    // what awaitFirst has locked, for the next run; nil: that locks itself
	run      *fleetRun // nil: the gate is in no fleet

	mu      sync.Mutex
	member  *fleet.Member // nil: see why
	why     error         // why there is no member
	since   time.Time     // when the gate began to join
	changed chan struct{} // closed when member or why changes

	again chan struct{} // gets a value when pins are to be looked at
}

// fleetRun is the time with one configuration.
type fleetRun struct {
	settings config.Fleet
	cancel   context.CancelFunc
	done     chan struct{}
}

// newFleetPart returns the part for a gate whose configuration now returns.
func newFleetPart(current func() *config.Config, log *slog.Logger) *fleetPart {
	f := &fleetPart{log: log, tree: atomicfile.In(current().State.Dir), config: current, started: time.Now().UTC(), why: managed.ErrNoFleet, changed: make(chan struct{}), again: make(chan struct{}, 1)}
	f.pins, f.sources, f.matches = &fleetPins{fleetPart: f}, &fleetSources{fleetPart: f}, &fleetHits{fleetPart: f}
	return f
}

// prepare prepares the change to a configuration: see part.
func (f *fleetPart) prepare(_ context.Context, _, c *config.Config) (change, error) {
	sources, err := setup.FetchSources(c.Lists)
	return change{commit: func() {
		f.configure(c)
		f.sources.set(sources)
	}}, err
}

// configure joins, leaves or changes the fleet, as the configuration says.
func (f *fleetPart) configure(c *config.Config) {
	f.changing.Lock()
	defer f.changing.Unlock()
	if f.closed {
		return
	}
	on := c.Fleet.On()
	left := on && f.hasLeft()
	if f.run != nil && (!on || left || !reflect.DeepEqual(f.run.settings, c.Fleet)) {
		f.end()
	}
	switch member := f.now(); {
	case !on:
		f.set(nil, managed.ErrNoFleet)
	case left:
		f.set(nil, errLeft)
	case f.run == nil:
		f.begin(c)
	case member != nil:
		member.SetLists(f.shares(c))
		select {
		case f.again <- struct{}{}:
		default:
		}
	}
	f.sources.update()
}

// hasLeft reports whether an admin has taken the gate out of the fleet.
func (f *fleetPart) hasLeft() bool {
	_, err := f.tree.Stat(setup.FleetLeft)
	return !errors.Is(err, fs.ErrNotExist)
}

// leave takes the gate out of the fleet, until join.
func (f *fleetPart) leave(c *config.Config) error {
	err := f.tree.MakeDirs(fleetDir)
	if err == nil {
		err = f.tree.WriteFile(setup.FleetLeft, fleetDir, ".new-*", []byte(time.Now().UTC().Format(time.RFC3339)+"\n"))
	}
	if err != nil {
		return fmt.Errorf("leaving the fleet: %w", err)
	}
	f.log.Info("this gate has left the fleet", "name", c.Fleet.Name)
	f.configure(c)
	return nil
}

// join ends leave.
func (f *fleetPart) join(c *config.Config) error {
	if err := f.tree.Remove(setup.FleetLeft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("joining the fleet: %w", err)
	}
	f.configure(c)
	return nil
}

// begin begins to be a member. The caller has locked changing.
func (f *fleetPart) begin(c *config.Config) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &fleetRun{settings: c.Fleet, cancel: cancel, done: make(chan struct{})}
	unlock := f.unlock
	f.run, f.unlock = r, nil
	f.mu.Lock()
	f.since = time.Now()
	f.mu.Unlock()
	f.set(nil, errJoining)
	go func() {
		defer close(r.done)
		f.keep(ctx, unlock)
	}()
}

// end ends what begin has begun.
func (f *fleetPart) end() {
	f.run.cancel()
	<-f.run.done
	f.run = nil
}

// close leaves the fleet for good: the process ends, or its successor is to be the member.
func (f *fleetPart) close() error {
	f.changing.Lock()
	defer f.changing.Unlock()
	f.closed = true
	if f.run != nil {
		f.end()
		f.set(nil, fleet.ErrClosed)
	}
	if f.unlock != nil {
		f.unlock()
		f.unlock = nil
	}
	return nil
}

// keep is a member until ctx ends. What is wrong with files is tried again, since mail needs no
// fleet. Unlock, if not nil, is what it would have to wait for.
func (f *fleetPart) keep(ctx context.Context, unlock func()) {
	if unlock == nil {
		unlock = f.lock(ctx)
	}
	if unlock == nil {
		return
	}
	defer unlock() // after the member has left
	grace := time.AfterFunc(fetchGrace, f.sources.update)
	defer grace.Stop()
	server := time.AfterFunc(fetchGrace, f.warnServer) // which may start with the gate
	defer server.Stop()
	for logged := ""; ctx.Err() == nil; {
		err := f.serve(ctx)
		if err == nil {
			return
		}
		f.set(nil, err)
		if err.Error() != logged {
			logged = err.Error()
			f.log.Error("this gate cannot join the fleet, and goes on alone", "error", err)
		}
		pause(ctx, fleetRetry)
	}
}

// lock waits until no other process of the gate is the member. It returns nil when ctx ends.
func (f *fleetPart) lock(ctx context.Context) (unlock func()) {
	for logged := ""; ctx.Err() == nil; {
		err := f.tree.MakeDirs(fleetDir)
		if err == nil {
			unlock, err = f.tree.TryLock(fleetDir)
		}
		if err == nil {
			return unlock
		}
		if !isLocked(err) && err.Error() != logged {
			logged = err.Error()
			f.set(nil, err)
			f.log.Error("this gate cannot join the fleet, and goes on alone", "error", err)
		}
		pause(ctx, fleetLockPoll)
	}
	return nil
}

// serve is a member until ctx ends. An error says that it has not become one.
func (f *fleetPart) serve(ctx context.Context) error {
	c := f.config()
	o, err := setup.Fleet(c)
	if err != nil {
		return err
	}
	rescan := make(chan struct{}, 1)
	look := func() {
		select {
		case rescan <- struct{}{}:
		default:
		}
	}
	o.Logger = f.log
	o.Lists = f.shares(c)
	o.Accounts = f.accounts
	o.Accept = setup.FleetAccept(f.config, f.store)
	o.Applied = func(string, *fleet.Version) { look() }
	o.StateChanged = f.pins.stateChanged(ctx, look)
	o.FetchFails = f.sources.fails
	o.FetchesChanged = func(string, bool) { f.sources.update() }
	o.Report = f.report
	m, err := fleet.Open(o)
	if err != nil {
		return err
	}
	defer m.Close()
	for subject, answer := range map[string]fleet.Answer{askLists: f.answerLists, fleetsearch.Subject: f.answerDecisions, askHits: f.matches.answer} {
		if err := m.Handle(subject, answer); err != nil {
			return err
		}
	}
	f.set(m, nil)
	defer f.set(nil, errJoining)
	var enrolling sync.WaitGroup
	defer enrolling.Wait()
	enrolling.Go(func() { f.matches.enrol(ctx, m) })
	m.SetLists(f.shares(f.config())) // a reload may have changed them meanwhile
	f.sources.update()
	f.pins.obeyAll(ctx, m)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.again:
			f.pins.obeyAll(ctx, m)
		case <-rescan:
			_ = f.store.Rescan(ctx) // what is wrong with lists is in their statistics, and in the log
		}
	}
}

func (f *fleetPart) set(m *fleet.Member, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member, f.why = m, why
	close(f.changed)
	f.changed = make(chan struct{})
}

// now returns the member; nil if there is none now.
func (f *fleetPart) now() *fleet.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.member
}

// wait waits until the gate is a member, if it is to become one soon.
func (f *fleetPart) wait(ctx context.Context) (*fleet.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, fleetWait)
	defer cancel()
	for {
		f.mu.Lock()
		m, why, changed := f.member, f.why, f.changed
		f.mu.Unlock()
		switch {
		case m != nil:
			return m, nil
		case errors.Is(why, managed.ErrNoFleet), errors.Is(why, errLeft), errors.Is(why, fleet.ErrClosed):
			return nil, why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", fleet.ErrOffline, why)
		}
	}
}

// Retry implements managed.Fleet. A gate that has left the fleet edits its own lists.
func (f *fleetPart) Retry(ctx context.Context, list string, edit func() error) error {
	m, err := f.wait(ctx)
	switch {
	case errors.Is(err, errLeft):
		return edit()
	case err != nil:
		return fmt.Errorf("the edit is refused: %w", err)
	}
	return m.Retry(ctx, list, edit)
}

// Publish implements managed.Fleet.
func (f *fleetPart) Publish(ctx context.Context, e fleet.Edit) (done func(placed bool), err error) {
	m, err := f.wait(ctx)
	switch {
	case errors.Is(err, errLeft):
		return func(bool) {}, nil
	case err != nil:
		return nil, fmt.Errorf("the edit is refused: %w", err)
	}
	return m.Publish(ctx, e)
}

// fleetSources are the lists that come from URLs: a list is fetched by one gate of the fleet.
type fleetSources struct {
	*fleetPart
	mu  sync.Mutex // held while the fetcher is updated; before fleetPart.mu
	all []fetch.Source
}

func (f *fleetSources) set(sources []fetch.Source) {
	f.mu.Lock()
	f.all = sources
	f.mu.Unlock()
	f.update()
}

// update makes the fetcher fetch the lists that are this gate's to fetch.
func (f *fleetSources) update() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var own []fetch.Source
	for _, s := range f.all {
		if f.own(s.Name) {
			own = append(own, s)
		}
	}
	f.fetcher.Update(own)
}

// own reports whether this gate is to fetch a list. A gate that cannot reach the fleet does.
func (f *fleetSources) own(list string) bool {
	c := f.config()
	i := setup.ListIndex(c, list)
	if i < 0 || !c.Lists[i].Fleet {
		return true
	}
	f.fleetPart.mu.Lock()
	m, why, since := f.member, f.why, f.since
	f.fleetPart.mu.Unlock()
	joining := m == nil && errors.Is(why, errJoining) || m != nil && !m.Status().Connected
	if joining && time.Since(since) < fetchGrace {
		return false
	}
	return m == nil || m.Fetches(list)
}

// maxFetchFailures is how often in a row this gate tries in vain to fetch a shared list, before
// another gate tries.
const maxFetchFailures = 3

func (f *fleetSources) fails(list string) bool {
	s, ok := f.fetcher.Status(list)
	return ok && s.Failures >= maxFetchFailures
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
