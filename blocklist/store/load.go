package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"spamgate/blocklist"
)

// load makes the configuration the Store's. On an error nothing changes, except that a new
// Store has its sources, to tell what is wrong with each.
func (s *Store) load(ctx context.Context, c Config) error {
	started := time.Now()
	if err := c.check(); err != nil {
		return err
	}
	if s.sources != nil && (c.StateDir != s.config.StateDir || c.ReadOnly != s.config.ReadOnly) {
		return fmt.Errorf("the state directory cannot change from %q to %q while the lists are served: restart", s.config.StateDir, c.StateDir)
	}
	defer s.watcher.Forget() // on errors; what was settled is no longer planned
	defer s.sweep()
	s.staged = nil // or there would be three filters in memory
	sources := make([]*source, len(c.Lists))
	results := make([]scanResult, len(c.Lists))
	var errs []error
	var unsettled bool
	for i := range c.Lists {
		src := s.newSource(&c, &c.Lists[i])
		sources[i] = src
		var p debounce
		if s.Set() != nil && src.live.good != nil { // something to serve until it is believed
			p = debounce{c.Debounce, c.MaxDebounce}
		}
		var again time.Time
		results[i], again = src.scan(ctx, s.watcher.Plan, nil, p)
		unsettled = unsettled || !again.IsZero()
		src.before = nil
		serves := s.live.versionOf(src.list.Name)
		had := serves != nil && serves != emptyVersion
		if r := results[i]; r.good == nil && src.list.Zone == "" && (had || !src.list.Optional) {
			errs = append(errs, unusable(src.list, had, r.err, c.ReadOnly))
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("loading the lists: %w", context.Cause(ctx))
	}
	if s.sources == nil {
		s.sources = sources
		s.keep(results)
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	set, err := s.newSet(ctx, c, results, s.generation()+1, started, s.live)
	for s.repair(ctx, err, sources, results) {
		set, err = s.newSet(ctx, c, results, s.generation()+1, started, s.live)
	}
	if err != nil {
		return err
	}
	s.config, s.sources = c, sources
	s.watcher.Settle()
	s.publish(set, results)
	if unsettled {
		s.watcher.Ring(time.Now())
	}
	return nil
}

// newSource returns the source of a list of a new configuration, with what is known of it:
// the version that serves, or that was stored.
func (s *Store) newSource(c *Config, l *List) *source {
	src := &source{list: l, options: c.readOptions(l), opener: Opener{StateDir: c.StateDir}, state: s.state, follow: c.Follow, advice: c.Advise}
	if src.options.protect != "" {
		src.protected = c.protected
	}
	if l.Zone != "" {
		return src
	}
	if old := s.known(src); old != nil {
		src.live, src.logged, src.loggedPin, src.accepted, src.kept, src.keptAs = old.live, old.logged, old.loggedPin, old.accepted, old.kept, old.keptAs
		src.mending, src.served, src.noted = old.mending, old.served, old.noted
		if !src.sameName(old) && src.keptAs == "" {
			src.keptAs = old.list.Name
		}
		guarded := old.list.guards() == l.guards() && old.list.maxBytes() == l.maxBytes()
		if !guarded && errors.Is(src.live.err, ErrHeld) {
			src.live.stamps = nil // what is held may no longer look wrong
		}
		return src
	}
	src.served = s.state.servedBefore(l.Name)
	if j := slices.IndexFunc(s.sources, src.sameName); j >= 0 {
		src.before = s.sources[j].live.good
		return src
	}
	switch v, same := s.state.load(l, src.options); {
	case same:
		src.live = scanResult{good: v, stamps: v.stamps}
	case v != nil:
		src.before = v
	}
	return src
}

// known returns the source that reads what src reads. If there are several it prefers the one
// of its name, since one of them may serve what is held in another. It returns nil if
// there is none.
func (s *Store) known(src *source) *source {
	var known *source
	for _, old := range s.sources {
		if src.sameFiles(old) && (known == nil || src.sameName(old)) {
			known = old
		}
	}
	return known
}

// look scans all sources and lets what has changed go live. If a change has to wait, for
// example since files are still being written, again is when to look next; else it is
// zero.
func (s *Store) look(ctx context.Context) (again time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil { // before ctx knows, perhaps: see within
		return again, ErrClosed
	}
	started := time.Now()
	defer s.sweep()
	p := debounce{s.config.Debounce, s.config.MaxDebounce}
	results := make([]scanResult, len(s.sources))
	for i, src := range s.sources {
		r, wait := src.scan(ctx, s.watcher.Plan, s.staged.result(i), p)
		results[i] = r
		if !wait.IsZero() && (again.IsZero() || wait.Before(again)) {
			again = wait
		}
	}
	if ctx.Err() != nil {
		s.watcher.Forget()
		return again, fmt.Errorf("looking at the lists: %w", context.Cause(ctx))
	}
	s.watcher.Settle()
	if !s.differ(results) {
		s.keep(results)
		if again.IsZero() {
			s.staged = nil
		}
		return again, nil
	}
	started = started.Add(-s.staged.spent())
	set, err := s.newSet(ctx, s.config, results, s.nextGeneration(results), started, s.live, s.prebuilt(results))
	for s.repair(ctx, err, s.sources, results) {
		set, err = s.newSet(ctx, s.config, results, s.nextGeneration(results), started, s.live)
	}
	if err != nil {
		return again, err
	}
	s.publish(set, results)
	return again, nil
}

// snapshot is a Set, and the versions of the lists that it was made of.
type snapshot struct {
	set      *blocklist.Set
	names    []string
	versions []*version
}

// versionOf returns the version of a list by its name; nil if the snapshot, which
// may be nil, has no such list.
func (s *snapshot) versionOf(name string) *version {
	if s == nil {
		return nil
	}
	if i := slices.Index(s.names, name); i >= 0 {
		return s.versions[i]
	}
	return nil
}

// newSet makes a Set of the lists' results, with the filters of previous ones if they fit;
// each may be nil.
func (s *Store) newSet(ctx context.Context, c Config, results []scanResult, generation uint64, began time.Time, previous ...*snapshot) (*snapshot, error) {
	made := &snapshot{}
	lists := make([]blocklist.SetList, len(c.Lists))
	for i := range c.Lists {
		v := results[i].version()
		made.names, made.versions = append(made.names, c.Lists[i].Name), append(made.versions, v)
		lists[i] = blocklist.SetList{List: c.Lists[i].rule(c.protected), Index: v.index, Stats: describeList(&c.Lists[i], results[i])}
	}
	var sets []*blocklist.Set
	for _, p := range previous {
		if p != nil {
			sets = append(sets, p.set)
		}
	}
	var err error
	made.set, err = blocklist.NewSet(ctx, blocklist.SetConfig{
		Lists: lists, Filter: c.Filter, FilterOnly: c.FilterOnly, Monitor: c.Monitor,
		Keys: s.state.keys, Counters: &s.counters, OnHit: c.OnHit, OnDamage: s.rebuild,
		Generation: generation, Began: began,
	}, sets...)
	return made, err
}

// stagedSet is a Set that was built while its files may still be being written.
type stagedSet struct {
	*snapshot
	results []scanResult
	took    time.Duration
}

func (g *stagedSet) result(i int) *scanResult {
	if g == nil {
		return nil
	}
	return &g.results[i]
}

// prebuilt returns the Set that was staged if it is of these results. Else it drops that, so
// that its filter is not in memory while a third one is made.
func (s *Store) prebuilt(results []scanResult) *snapshot {
	if s.staged == nil {
		return nil
	}
	for i := range results {
		if s.staged.versions[i] != results[i].version() {
			s.staged = nil
			return nil
		}
	}
	return s.staged.snapshot
}

func (g *stagedSet) spent() time.Duration {
	if g == nil {
		return 0
	}
	return g.took
}

// stage builds the Set that look will want if the files stay as they are now. Nothing goes
// live.
func (s *Store) stage(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := time.Now()
	s.staged = nil
	defer s.sweep()
	defer s.watcher.Forget()
	results := make([]scanResult, len(s.sources))
	for i, src := range s.sources {
		results[i], _ = src.scan(ctx, s.watcher.Plan, nil, debounce{})
	}
	if ctx.Err() != nil || !s.differ(results) {
		return
	}
	// An error comes again in look, which has somebody to tell.
	if set, err := s.newSet(ctx, s.config, results, s.nextGeneration(results), started, s.live); err == nil {
		s.staged = &stagedSet{set, results, time.Since(started)}
	}
}

// differ reports whether the results would change the Set or what it says of
// its lists.
func (s *Store) differ(results []scanResult) bool {
	for i, src := range s.sources {
		if r := results[i]; r.good != src.live.good || errorText(r.err) != errorText(src.live.err) || !samePin(r.pin, src.live.pin) {
			return true
		}
	}
	return false
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// keep makes the results those that serve.
func (s *Store) keep(results []scanResult) {
	for i, src := range s.sources {
		src.live = results[i]
		if err := errors.Join(src.store(), src.noteServed()); err != nil {
			s.state.say(err)
		}
	}
	s.noteExpiry()
}

// sweep removes the indexes that were built and did not go live, nor may yet. It also
// removes the notes on lists that are no longer being read.
func (s *Store) sweep() {
	s.state.sweep(func(name string) bool {
		return s.staged != nil && slices.ContainsFunc(s.staged.results, func(r scanResult) bool { return r.version().pending == name })
	})
	s.state.endBuilds(func(list string) bool {
		return s.staged != nil && s.staged.versionOf(list) != s.live.versionOf(list)
	})
}

// generation returns that of the present Set; 0 before the first.
func (s *Store) generation() uint64 {
	if set := s.Set(); set != nil {
		return set.Generation()
	}
	return 0
}

// nextGeneration returns that of a Set of these results: a new one if it may decide
// otherwise than the present Set.
func (s *Store) nextGeneration(results []scanResult) uint64 {
	for i := range results {
		if results[i].version() != s.live.versions[i] {
			return s.generation() + 1
		}
	}
	return s.generation()
}

// largeBuild is the least number of new entries after which the Store runs the garbage
// collector: ten million entries leave some 60 MiB, which would stay for minutes.
const largeBuild = 1_000_000

// largeFilter is the least size in bytes of a replaced filter after which it does so.
const largeFilter = 64 << 20

// settle does what can wait until a Set is live. The configuration is that of the Set:
// meanwhile a reload may change the Store's.
func (s *Store) settle(c *Config, old, set *snapshot) {
	built, kept := 0, 0
	replaced := old != nil && !old.set.SharesFilter(set.set) && old.set.Stats().FilterBytes >= largeFilter
	for i, v := range set.versions {
		if v.fresh && old.versionOf(set.names[i]) != v {
			built += v.Entries
			if v.kept {
				kept++
			}
		}
	}
	say := s.state.attempt()
	if err := set.set.Settle(); err != nil || kept > 0 {
		say(err)
	}
	if built >= largeBuild || replaced {
		debug.FreeOSMemory()
	}
	s.probe(c, set.set)
}

// probePause is how many times [Config.Debounce] a Set is live before its filter is
// measured: a start, a handover and lists that change again come first.
const probePause = 10

// probe measures the live filter with changed entries (see [blocklist.Set.Probe]), and
// logs the rate that this shows. An index that is damaged is noticed elsewhere.
//
// It stops when another filter is live, which is then measured instead.
func (s *Store) probe(c *Config, set *blocklist.Set) {
	if c.ReadOnly || c.Probes < 0 || !set.Stats().Unprobed || !s.serves(set) {
		return // settling may have taken longer than that of the next Set
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if before := s.probing.Swap(&cancel); before != nil {
		(*before)()
	}
	select {
	case <-time.After(probePause * c.Debounce):
	case <-ctx.Done():
	}
	if !s.serves(set) || set.Probe(ctx, c.Probes) != nil {
		return
	}
	stats := set.Stats()
	worst := blocklist.Worst(stats.Similar)
	c.Logger.Info("filter measured", "expected_fpr", stats.FPR, "change", worst.Change, "probes", worst.Probes, "false", worst.False)
	if stats.Warning != "" {
		c.Logger.Warn("filter", "warning", stats.Warning)
	}
}

// serves reports whether the filter of a Set is live.
func (s *Store) serves(set *blocklist.Set) bool {
	live := s.Set()
	return live != nil && live.SharesFilter(set)
}

// publish makes the Set live.
func (s *Store) publish(set *snapshot, results []scanResult) {
	old := s.live
	s.staged, s.live = nil, set
	s.set.Store(set.set)
	s.keep(results)
	if !s.ended && (old == nil || !old.set.SharesFilter(set.set)) {
		c := s.config
		s.running.Go(func() { s.settle(&c, old, set) })
	}

	s.swapMu.Lock()
	close(s.swap)
	s.swap = make(chan struct{})
	s.swapMu.Unlock()

	s.log(old, set)
	s.archive(set)
}
