package world

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A timedStory is the story of a world with many goroutines in false time. Lines of one instant are
// sorted.
type timedStory struct {
	*world
	begun time.Time

	mu    sync.Mutex // also of the world that has the story
	lines []timedLine
	err   error // the first thing that must not be
}

type timedLine struct {
	elapsed time.Duration
	text    string
}

func (s *timedStory) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, timedLine{time.Since(s.begun), strings.ReplaceAll(fmt.Sprintf(format, args...), s.dir+"/", "")})
}

// fail notes the first thing that must not be.
func (s *timedStory) fail(format string, args ...any) {
	s.tell("WRONG: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, fmt.Errorf(format, args...))
}

// conclude gives the lines to the world, after the panic of a world that could not end.
func (s *timedStory) conclude(panicked any) error {
	if panicked != nil && s.err == nil { // goroutines are left: see strayGoroutines
		s.err = fmt.Errorf("%v", panicked)
	}
	slices.SortStableFunc(s.lines, func(a, b timedLine) int {
		return cmp.Or(cmp.Compare(a.elapsed, b.elapsed), strings.Compare(a.text, b.text))
	})
	for _, l := range s.lines {
		s.world.tell("%10.4f %s", l.elapsed.Seconds(), l.text)
	}
	return s.err
}
