package store

import (
	"context"
	"errors"
	"time"

	"spamgate/blocklist"
)

// build makes an index of the files. If the state directory cannot take it, the index is made
// in a temporary file.
func (s *source) build(ctx context.Context, stamps []stamp) (*version, []stamp, error) {
	good := s.live.good
	p := s.plan()
	again := good != nil && s.live.err == nil && !good.current()
	if again {
		s.logAgain(good)
		if known := sumOf(good.stamps); good.stale {
			p.accepted = func(sum string) bool { return sum == known || s.isAccepted(sum) }
		} else {
			p.known = known
		}
	}
	s.state.beginBuild(s.list.Name, versionID(stamps, &s.options, s.list))
	v, read, err := s.buildAs(ctx, p, stamps)
	if err != nil {
		if acceptable(err) {
			err = s.advise(err, AcceptHeld)
		}
		return nil, read, err
	}
	if again && good.index.Damaged() {
		s.state.log.Info("index rebuilt after damage", "list", s.list.Name, "entries", v.Entries)
	}
	return v, read, nil
}

// plan returns how the list is read as it is configured.
func (s *source) plan() readPlan {
	name := s.state.newName() // before work is asked for, which it may make
	p := readPlan{
		options:   s.options,
		opener:    s.opener,
		guards:    s.list.guards(),
		protected: s.protected,
		follow:    s.follow,
		list:      s.list,
		before:    s.live.good,
		served:    s.comparable(time.Now()),
		kept:      func(files []stamp) bool { id, _ := s.state.keptVersion(s.list.Name, files); return id != "" },
		accepted:  s.isAccepted,
		dir:       s.state.workDir(),
		name:      name,
		keys:      s.state.keys,
		log:       s.state.log,
	}
	if p.before == nil {
		p.before = s.before
	}
	return p
}

// buildAs makes an index by a plan.
func (s *source) buildAs(ctx context.Context, p readPlan, stamps []stamp) (*version, []stamp, error) {
	if p.name != "" {
		if err := s.state.tree.MakeDirs(ListName(s.list.Name)); err != nil {
			s.state.say(err)
			p.name = ""
		} else {
			p.path = s.state.tree.Path(p.name)
		}
	}
	p.bits = s.state.bitsFile(s.list.Name, p.name == "")
	v, read, err := readVersion(ctx, p, stamps)
	if toState := (buildError{}); p.path != "" && errors.As(err, &toState) && ctx.Err() == nil {
		s.state.say(toState)
		p.dir, p.name, p.path = "", "", ""
		p.bits.readOnly = true
		v, read, err = readVersion(ctx, p, stamps)
	}
	if err != nil {
		return nil, read, err
	}
	v.fresh, v.accepted = true, s.isAccepted(sumOf(read))
	v.pending = p.name
	return v, read, nil
}

// logAgain logs why files are read that have not changed.
func (s *source) logAgain(good *version) {
	log := s.state.log
	switch until := good.nextUntil(); {
	case good.index.Damaged():
		log.Error("index damaged, its list is read again", "list", s.list.Name)
	case good.stale:
		log.Info("index of another version of the program, its list is read again", "list", s.list.Name)
	case good.early():
		log.Info("the clock was ahead when entries expired, their list is read again", "list", s.list.Name, "read", good.Loaded.UTC().Format(time.RFC3339))
	case !until.IsZero():
		log.Info("entries expired, their list is read again", "list", s.list.Name, "until", until.UTC().Format(time.RFC3339))
	}
}

// repair reads a list again if building the filter found its index damaged. It reports whether
// to build again, even if the list could not be read: the damage is known from then on (see
// [blocklist.NewSet]).
func (s *Store) repair(ctx context.Context, err error, sources []*source, results []scanResult) bool {
	var damage *blocklist.IndexError
	if !errors.As(err, &damage) || ctx.Err() != nil {
		return false
	}
	v := results[damage.List].good
	if v == nil || v != sources[damage.List].live.good {
		return false // just built: a second time would be no better
	}
	if v.index.MarkDamaged() {
		return false
	}
	r, _ := sources[damage.List].scan(ctx, s.watcher.Plan, nil, debounce{})
	results[damage.List] = r
	return true
}
