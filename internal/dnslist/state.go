package dnslist

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/text"
)

const (
	// checkEvery is how often a list that works is checked.
	checkEvery = 5 * time.Minute

	// confirmAfter is the age of the last check from which a listing waits for another.
	confirmAfter = time.Minute

	// firstBackoff and maxBackoff are the first and the longest time between the checks
	// of a list that does not work. Each is twice the one before.
	firstBackoff = 10 * time.Second
	maxBackoff   = 5 * time.Minute

	// breakAfter is the number of failures in a row after which a list is not asked.
	breakAfter = 5
)

// State says whether a list is asked.
type State string

// The states. Their text is a label of metrics.
const (
	Checking State = "checking" // the first check is under way; answers wait for it
	On       State = "on"
	Broken   State = "broken" // it failed too often: not asked until a check gets answers
	Off      State = "off"    // it did not pass its check: not asked until it does
)

// state is what is known of a list besides its answers. It has a goroutine, Client.watch.
type state struct {
	list   atomic.Pointer[list] // the present configuration
	log    *slog.Logger
	counts counts
	epoch  *atomic.Uint32 // of the zone, see Client.epochs
	ctx    context.Context
	stop   context.CancelFunc
	wake   chan struct{} // asks for a check at once
	first  chan struct{} // closed after the first check

	firstOnce sync.Once // closes first

	mu       sync.Mutex
	is       State
	why      string        // of Broken and Off
	warning  string        // of On
	pending  chan struct{} // closed after the next check, if a listing waits for it
	since    time.Time     // when the state changed last
	checked  time.Time     // when the last check ended
	next     time.Time     // when the next check begins
	failures int           // in a row
	backoff  time.Duration
	text     string // what was logged last
}

func newState(ctx context.Context, log *slog.Logger, epoch *atomic.Uint32) *state {
	s := &state{log: log, epoch: epoch, is: Checking, since: time.Now(), wake: make(chan struct{}, 1), first: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// blocked returns why the list is not asked, "" if it is.
func (s *state) blocked() Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.is {
	case Off:
		return CauseOff
	case Broken:
		return CauseBroken
	}
	return ""
}

// note counts a success or a failure of the list's questions. Too many failures in a row
// ask for a check: at once the first time, else after the backoff, which lasts until a
// question is answered.
func (s *state) note(c Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c {
	case CauseBusy, CauseStopped: // not the list's fault
		return
	case "":
		s.failures, s.backoff = 0, 0
		return
	}
	if s.failures++; s.failures < breakAfter || s.is != On {
		return
	}
	s.set(Broken, failureText(c))
	s.next = time.Now().Add(s.backoff)
	if s.backoff > 0 {
		s.say()
	}
	s.signal()
}

// set changes the state. What a list has answered before it was switched off does not count
// afterwards. The caller must hold mu.
func (s *state) set(is State, why string) {
	if s.is != is {
		s.since = time.Now()
		if is == Off {
			s.epoch.Add(1)
		}
	}
	s.is, s.why = is, why
}

// say logs the state if it differs from what was logged last. The caller must hold mu.
func (s *state) say() {
	l := s.list.Load()
	line := string(s.is) + s.why + s.warning
	if line == s.text {
		return
	}
	log := s.log.With("list", l.Name, "zone", text.ShownZone(l.Zone))
	switch s.is {
	case Off:
		log.Warn("a DNS list is switched off until it passes its check", "reason", s.why)
	case Broken:
		log.Warn("a DNS list does not answer and is not asked for now", "reason", s.why)
	case On:
		if s.warning != "" {
			log.Warn("a DNS list may not work", "reason", s.warning)
		} else if strings.HasPrefix(s.text, string(On)) {
			log.Info("a DNS list passes its check without a warning")
		} else if s.text != "" {
			log.Info("a DNS list is asked again")
		}
	}
	s.text = line
}

// grow makes the backoff longer. The caller must hold mu.
func (s *state) grow() { s.backoff = min(max(2*s.backoff, firstBackoff), maxBackoff) }

// confirm returns what is closed after the check that a listing has to wait for: nil if the
// last one is fresh. So a publisher that begins to list everything, as some did at their
// end, has no mail refused for longer than confirmAfter.
func (s *state) confirm() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil && s.is == On && time.Since(s.checked) >= confirmAfter {
		s.pending = make(chan struct{})
		s.next = time.Now()
		s.signal()
	}
	return s.pending
}

// release lets go the messages that wait for a check. The caller must hold mu.
func (s *state) release() {
	s.firstOnce.Do(func() { close(s.first) })
	if s.pending != nil {
		close(s.pending)
		s.pending = nil
	}
}

// signal wakes the goroutine that checks.
func (s *state) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// recheck asks for a check at once.
func (s *state) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Now()
	s.signal()
}

// failureText says in words why a list is not asked.
func failureText(c Cause) string {
	switch c {
	case CauseTimeout:
		return "no answer in time"
	case CauseNetwork:
		return "the resolver cannot be reached"
	case CauseRefused:
		return "it refuses our questions"
	case CauseForeign:
		return "its answers are outside 127.0.0.0/8"
	}
	return "the resolver gets no answer"
}
