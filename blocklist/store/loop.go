package store

import (
	"context"
	"time"

	"spamgate/blocklist/listfile"
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
func (s *schedule) happened(instant time.Time) {
	if s.event.IsZero() {
		s.event = instant
	}
}

// next returns what to do next, and when.
func (s *schedule) next() (time.Time, job) {
	instant := s.looked.Add(s.poll)
	if !s.again.IsZero() {
		instant = earlier(instant, s.again)
	}
	if s.expiry.After(s.looked) { // else the look has tried, and comes again by itself
		instant = earlier(instant, s.expiry)
	}
	if s.event.IsZero() {
		return instant, look
	}
	instant = earlier(instant, s.event.Add(s.debounce))
	// While a file is being written, building ahead would be in vain.
	if ahead := s.event.Add(s.debounce / stagePart); !s.staged && s.again.IsZero() && ahead.Before(instant) {
		return ahead, stage
	}
	return instant, look
}

// looking notes that a look begins.
func (s *schedule) looking(instant time.Time) {
	*s = schedule{timing: s.timing, looked: instant}
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
		instant, job := plan.next()
		timer.Reset(time.Until(instant))
		select {
		case <-s.ctx.Done():
			return
		case plan.timing = <-s.timing:
		case <-s.wake:
		case <-s.watcher.Rang():
			if instant := s.watcher.Take(); !instant.IsZero() {
				plan.happened(instant)
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

// wakeLoop makes the loop decide again what to do when: an entry expires, or an index turns
// out to be damaged, although no file has changed.
func (s *Store) wakeLoop() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// rebuild asks for the lists with damaged indexes to be read again. Lookups call it.
func (s *Store) rebuild() {
	s.damage.Store(true)
	s.wakeLoop()
}

// noteExpiry notes when a list is due to be read again since an entry has expired. A list
// whose version on disk does not serve does not count: lookups ignore what has expired, and
// reading the list again would not change what serves.
func (s *Store) noteExpiry() {
	var next time.Time
	for _, src := range s.sources {
		due := src.live.version().due()
		if !due.IsZero() && src.live.err == nil && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	var offset int64
	if !next.IsZero() {
		offset = next.UnixMicro()
	}
	if s.expiry.Swap(offset) != offset {
		s.wakeLoop()
	}
}

// nextExpiry returns what noteExpiry has noted; zero: never.
func (s *Store) nextExpiry() time.Time {
	if offset := s.expiry.Load(); offset != 0 {
		return time.UnixMicro(offset)
	}
	return time.Time{}
}

// longLines is from how many lines on a list is long: reading it takes a tenth of a second
// or more.
const longLines = 100_000

// Listening says that clients are served. With [Config.StoredFirst] the Store now reads the
// long lists that it left unread.
func (s *Store) Listening() {
	if s.state.deferring.Swap(false) {
		s.watcher.Ring(time.Now())
	}
}

// defers reports whether the files need not be read before clients are served: they are
// long, and a stored index of what they held serves meanwhile.
func (s *source) defers(paths []string) bool {
	good := s.live.good
	if !s.state.deferring.Load() || good == nil || !good.kept || s.live.err != nil || good.index.Damaged() {
		return false
	}
	if good.lines() < longLines && !s.longFiles(paths) {
		return false
	}
	if !s.deferred {
		s.deferred = true
		s.state.log.Info("the stored index of a long list serves, its files are read once the gate listens", "list", s.list.Name, "entries", good.Entries)
	}
	return true
}

// lines returns how many lines the version had, without comments.
func (c *content) lines() int {
	return c.Entries + c.Invalid + c.Unsupported + c.Expired + c.Protected + c.Disallowed
}

// longFiles reports whether the files have longLines or more. It counts no more than that,
// which takes some milliseconds.
func (s *source) longFiles(paths []string) bool {
	left := longLines
	for _, path := range paths {
		f, err := s.opener.Open(path)
		if err != nil {
			return false // reading it says what is wrong
		}
		n, err := listfile.CountLines(f, left)
		f.Close()
		if left -= n; left <= 0 || err != nil {
			return left <= 0
		}
	}
	return false
}
