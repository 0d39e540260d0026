package blocklist

import (
	"context"
	"errors"
	"fmt"
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
	defer s.watcher.forget() // on errors; what was settled is no longer planned
	c = c.withDefaults()
	sources := make([]*source, len(c.Lists))
	readings := make([]reading, len(c.Lists))
	var errs []error
	var unsettled bool
	for i := range c.Lists {
		src := &source{list: &c.Lists[i], options: c.readOptions(&c.Lists[i])}
		if j := slices.IndexFunc(s.sources, src.sameFiles); j >= 0 {
			src.live, src.logged = s.sources[j].live, s.sources[j].logged
		} else if j := slices.IndexFunc(s.sources, src.sameName); j >= 0 {
			src.before = s.sources[j].live.good
		}
		sources[i] = src
		var p patience
		if src.live.good != nil { // something to serve until it is believed
			p = patience{c.Debounce, c.MaxDebounce}
		}
		var again time.Time
		readings[i], again = src.scan(ctx, s.watcher.plan, nil, p)
		unsettled = unsettled || !again.IsZero()
		had := src.before != nil
		src.before = nil
		if r := readings[i]; r.good == nil && (had || !src.list.Optional) {
			errs = append(errs, fmt.Errorf("list %q has no usable version: %w (optional = true would start without it)", src.list.Name, r.err))
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

// look scans all sources and lets what has changed go live. Where something is
// not to be believed yet, such as files that are still being written, again is
// when to look next; else it is zero.
func (s *Store) look(ctx context.Context) (again time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := time.Now()
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
	set, err := newSet(ctx, s.config, s.layout, readings, s.Set(), s.staged.prebuilt())
	if err != nil {
		return again, err
	}
	set.generation = s.generation()
	if !sameVersions(set.lists, s.Set().lists) {
		set.generation++
	}
	s.publish(set, readings, s.staged.spent()+time.Since(started))
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

func (g *staged) prebuilt() *Set {
	if g == nil {
		return nil
	}
	return g.set
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
	}
}

// generation is that of the present Set; 0 before the first.
func (s *Store) generation() uint64 {
	if set := s.Set(); set != nil {
		return set.generation
	}
	return 0
}

// publish makes the Set live.
func (s *Store) publish(set *Set, readings []reading, took time.Duration) {
	set.counters = &s.counters
	old := s.Set()
	s.keep(readings)
	s.staged = nil
	s.set.Store(set)
	if !s.ended && (old == nil || old.filter != set.filter) {
		s.running.Go(set.filter.UseHugePages)
	}

	s.swapMu.Lock()
	close(s.swap)
	s.swap = make(chan struct{})
	s.swapMu.Unlock()

	s.log(old, set, took)
}
