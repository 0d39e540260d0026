package store

import (
	"context"
	"time"
)

// timing says how often, and how soon after events, the Store looks at files.
type timing struct{ poll, debounce time.Duration }

func (c *Config) timing() timing { return timing{c.PollInterval, c.Debounce} }

// stagePart is the part of the debounce time after an event that passes before a Set is built
// ahead: most writers have finished by then.
const stagePart = 10

// schedule decides when to look at files. It knows no clock and no files.
//
// A look comes one debounce time after the first event. Later events do not delay it, or
// one list that is written all the time would delay the others. The look itself finds out
// whether each file has been left alone.
type schedule struct {
	timing
	looked time.Time // when the last look began
	again  time.Time // when it asked for another; zero: it did not
	event  time.Time // the first since that look; zero: none
	staged bool      // a Set was built ahead since
	expiry time.Time // when entries expire; zero: never
}

type job int

const (
	stage job = iota // build ahead
	look             // let what is settled go live
)

// happened notes an event.
func (s *schedule) happened(at time.Time) {
	if s.event.IsZero() {
		s.event = at
	}
}

// next returns what to do next, and when.
func (s *schedule) next() (time.Time, job) {
	at := s.looked.Add(s.poll)
	if !s.again.IsZero() {
		at = earlier(at, s.again)
	}
	if s.expiry.After(s.looked) { // else the look has tried, and comes again by itself
		at = earlier(at, s.expiry)
	}
	if s.event.IsZero() {
		return at, look
	}
	at = earlier(at, s.event.Add(s.debounce))
	// While a file is being written, building ahead would be in vain.
	if ahead := s.event.Add(s.debounce / stagePart); !s.staged && s.again.IsZero() && ahead.Before(at) {
		return ahead, stage
	}
	return at, look
}

// looking notes that a look begins.
func (s *schedule) looking(at time.Time) {
	*s = schedule{timing: s.timing, looked: at}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// run looks at files when it is time to, until the Store is closed.
func (s *Store) run(t timing) {
	plan := schedule{timing: t, looked: time.Now()}
	// What was being written while Open read it is looked at again.
	plan.happened(plan.looked)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		plan.expiry = s.nextExpiry()
		if s.damage.Load() {
			plan.again = time.Now()
		}
		at, job := plan.next()
		timer.Reset(time.Until(at))
		select {
		case <-s.ctx.Done():
			return
		case plan.timing = <-s.timing:
		case <-s.wake:
		case <-s.watcher.Rang():
			if at := s.watcher.Take(); !at.IsZero() {
				plan.happened(at)
			}
		case <-timer.C:
			s.do(s.ctx, job, &plan)
		}
	}
}

func (s *Store) do(ctx context.Context, job job, plan *schedule) {
	switch job {
	case stage:
		plan.staged = true
		s.stage(ctx)
	case look:
		plan.looking(time.Now())
		s.damage.Store(false)
		var err error
		if plan.again, err = s.look(ctx); ctx.Err() != nil {
			return
		}
		if text := errorText(err); text != s.failing {
			s.failing = text
			if err != nil {
				s.state.log.Error("lists not rebuilt, the present ones serve on", "error", err)
			}
		}
	}
}
