package blocklist

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// load makes the configuration the Store's. On an error nothing changes, but
// that a new Store has its sources, to tell what is wrong with each.
func (s *Store) load(ctx context.Context, c Config) error {
	started := time.Now()
	layout, err := c.check()
	if err != nil {
		return err
	}
	if s.sources != nil && (c.StateDir != s.config.StateDir || c.ReadOnly != s.config.ReadOnly) {
		return fmt.Errorf("the state directory cannot change from %q to %q while the lists are served: restart", s.config.StateDir, c.StateDir)
	}
	defer s.watcher.forget() // on errors; what was settled is no longer planned
	defer s.sweep()
	s.staged = nil // or there would be three filters in memory
	c.keys = s.state.keys
	sources := make([]*source, len(c.Lists))
	readings := make([]reading, len(c.Lists))
	var errs []error
	var unsettled bool
	for i := range c.Lists {
		src := s.newSource(&c, &c.Lists[i])
		sources[i] = src
		var p patience
		if s.Set() != nil && src.live.good != nil { // something to serve until it is believed
			p = patience{c.Debounce, c.MaxDebounce}
		}
		var again time.Time
		readings[i], again = src.scan(ctx, s.watcher.plan, nil, p)
		unsettled = unsettled || !again.IsZero()
		src.before = nil
		serves := s.Set().versionOf(src.list.Name)
		had := serves != nil && serves != nothing
		if r := readings[i]; r.good == nil && (had || !src.list.Optional) {
			errs = append(errs, unusable(src.list, had, r.err, c.ReadOnly))
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("loading the lists: %w", context.Cause(ctx))
	}
	if s.sources == nil {
		s.sources = sources
		s.keep(readings)
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	set, err := newSet(ctx, c, layout, readings, s.Set())
	for s.repair(ctx, err, sources, readings) {
		set, err = newSet(ctx, c, layout, readings, s.Set())
	}
	if err != nil {
		return err
	}
	s.config, s.layout, s.sources = c, layout, sources
	s.watcher.settle()
	set.generation = s.generation() + 1
	s.publish(set, readings, time.Since(started))
	if unsettled {
		s.watcher.ring(time.Now())
	}
	return nil
}

// newSource is a list of a new configuration, with what is known of it: what it
// serves, or what was stored of it.
func (s *Store) newSource(c *Config, l *List) *source {
	src := &source{list: l, options: c.readOptions(l), opener: Opener{c.StateDir}, state: s.state, follow: c.Follow}
	if src.options.protect != "" {
		src.protected = c.protected
	}
	if old := s.known(src); old != nil {
		src.live, src.logged, src.accepted, src.kept, src.keptAs = old.live, old.logged, old.accepted, old.kept, old.keptAs
		src.mending = old.mending
		if !src.sameName(old) && src.keptAs == "" {
			src.keptAs = old.list.Name
		}
		guarded := old.list.guards() == l.guards() && old.list.maxBytes() == l.maxBytes()
		if !guarded && errors.Is(src.live.err, ErrHeld) {
			src.live.stamps = nil // what is held may no longer look wrong
		}
		return src
	}
	if j := slices.IndexFunc(s.sources, src.sameName); j >= 0 {
		src.before = s.sources[j].live.good
		return src
	}
	switch v, same := s.state.load(l, src.options); {
	case same:
		src.live = reading{good: v, stamps: v.stamps}
	case v != nil:
		src.before = v
	}
	return src
}

// known is the list that reads what src reads: of several the one of its name,
// since one of them may serve what is held in another. Nil if there is none.
func (s *Store) known(src *source) *source {
	var known *source
	for _, old := range s.sources {
		if src.sameFiles(old) && (known == nil || src.sameName(old)) {
			known = old
		}
	}
	return known
}

// look scans all sources and lets what has changed go live. Where something is
// not to be believed yet, such as files that are still being written, again is
// when to look next; else it is zero.
func (s *Store) look(ctx context.Context) (again time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil { // before ctx knows, perhaps: see within
		return again, ErrClosed
	}
	started := time.Now()
	defer s.sweep()
	p := patience{s.config.Debounce, s.config.MaxDebounce}
	readings := make([]reading, len(s.sources))
	for i, src := range s.sources {
		r, wait := src.scan(ctx, s.watcher.plan, s.staged.reading(i), p)
		readings[i] = r
		if !wait.IsZero() && (again.IsZero() || wait.Before(again)) {
			again = wait
		}
	}
	if ctx.Err() != nil {
		s.watcher.forget()
		return again, fmt.Errorf("looking at the lists: %w", context.Cause(ctx))
	}
	s.watcher.settle()
	if !s.differ(readings) {
		s.keep(readings)
		if again.IsZero() {
			s.staged = nil
		}
		return again, nil
	}
	took := s.staged.spent()
	set, err := newSet(ctx, s.config, s.layout, readings, s.Set(), s.prebuilt(readings))
	for s.repair(ctx, err, s.sources, readings) {
		set, err = newSet(ctx, s.config, s.layout, readings, s.Set())
	}
	if err != nil {
		return again, err
	}
	set.generation = s.generation()
	if !sameVersions(set.lists, s.Set().lists) {
		set.generation++
	}
	s.publish(set, readings, took+time.Since(started))
	return again, nil
}

// staged is a Set that was built while its files may still be being written.
type staged struct {
	set      *Set
	readings []reading
	took     time.Duration
}

func (g *staged) reading(i int) *reading {
	if g == nil {
		return nil
	}
	return &g.readings[i]
}

// prebuilt is the Set that was staged, if it is of these readings; else it is
// given up, so that its filter is not in memory while the third one is made.
func (s *Store) prebuilt(readings []reading) *Set {
	if s.staged == nil {
		return nil
	}
	for i := range readings {
		if s.staged.set.lists[i].version != readings[i].version() {
			s.staged = nil
			return nil
		}
	}
	return s.staged.set
}

func (g *staged) spent() time.Duration {
	if g == nil {
		return 0
	}
	return g.took
}

// stage builds the Set that look will want if the files stay as they are now.
// Nothing goes live.
func (s *Store) stage(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := time.Now()
	s.staged = nil
	defer s.sweep()
	defer s.watcher.forget()
	readings := make([]reading, len(s.sources))
	for i, src := range s.sources {
		readings[i], _ = src.scan(ctx, s.watcher.plan, nil, patience{})
	}
	if ctx.Err() != nil || !s.differ(readings) {
		return
	}
	// An error comes again in look, which has somebody to tell.
	if set, err := newSet(ctx, s.config, s.layout, readings, s.Set()); err == nil {
		s.staged = &staged{set, readings, time.Since(started)}
	}
}

// differ reports whether the readings would change the Set or what it says of
// its lists.
func (s *Store) differ(readings []reading) bool {
	for i, src := range s.sources {
		if r := readings[i]; r.good != src.live.good || errorText(r.err) != errorText(src.live.err) {
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

// keep makes the readings those that serve.
func (s *Store) keep(readings []reading) {
	for i, src := range s.sources {
		src.live = readings[i]
		if err := src.store(); err != nil {
			s.state.say(err)
		}
	}
	s.noteExpiry()
}

// sweep removes the indexes that were built and did not go live, nor may yet, and
// what is noted of lists that are no longer being read.
func (s *Store) sweep() {
	s.state.sweep(func(name string) bool {
		return s.staged != nil && slices.ContainsFunc(s.staged.readings, func(r reading) bool { return r.version().pending == name })
	})
	s.state.endBuilds(func(list string) bool {
		return s.staged != nil && s.staged.set.versionOf(list) != s.Set().versionOf(list)
	})
}

// generation is that of the present Set; 0 before the first.
func (s *Store) generation() uint64 {
	if set := s.Set(); set != nil {
		return set.generation
	}
	return 0
}

// largeBuild is from how many new entries on the garbage of a build is worth a
// collection of its own: of ten million it is some 60 MiB, which would stay for
// minutes.
const largeBuild = 1_000_000

// largeFilter is from how many bytes on that is so of a filter that was replaced.
const largeFilter = 64 << 20

// settle does what can wait until a Set is live.
func (s *Store) settle(old, set *Set) {
	built, kept := 0, 0
	replaced := old != nil && old.filter != set.filter && old.stats.FilterBytes >= largeFilter
	for i := range set.lists {
		if l := &set.lists[i]; l.version.fresh && old.versionOf(l.Name) != l.version {
			built += l.version.Entries
			if l.version.kept {
				kept++
			}
		}
	}
	if err := set.settleFilter(); err != nil || kept > 0 {
		s.state.say(err)
	}
	if built >= largeBuild || replaced {
		debug.FreeOSMemory()
	}
}

// publish makes the Set live.
func (s *Store) publish(set *Set, readings []reading, took time.Duration) {
	set.counters = &s.counters
	set.repair = s.rebuild
	set.stats.Took = took
	old := s.Set()
	s.staged = nil
	s.set.Store(set)
	s.keep(readings)
	if !s.ended && (old == nil || old.filter != set.filter) {
		s.running.Go(func() { s.settle(old, set) })
	}

	s.swapMu.Lock()
	close(s.swap)
	s.swap = make(chan struct{})
	s.swapMu.Unlock()

	s.log(old, set, took)
	s.archive(set)
}
