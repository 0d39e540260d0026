package dnslist

import (
	"sync/atomic"
	"time"
)

// Status says how a list does.
type Status struct {
	Name string
	Zone string

	State State
	// Reason says why the list is Off or Broken. Warning is set if it is On, but may not
	// work as it should. Both are parts of a sentence, in printable ASCII.
	Reason  string
	Warning string
	Since   time.Time // of the State

	Checked   time.Time // when the last check ended; zero before the first
	NextCheck time.Time

	Counts Counts
}

// Counts are numbers since the list was configured first.
type Counts struct {
	// Questions were sent to a resolver for mail, those for texts included. CacheHits
	// needed none: the answer was cached, or another message had just asked.
	Questions, CacheHits uint64

	// NotListed, Listed and Unknown count the domains of messages, each once a message.
	NotListed, Listed uint64
	Unknown           map[Cause]uint64 // has all Causes
}

// counts are Counts that are counting.
type counts struct {
	questions, cacheHits, notListed, listed atomic.Uint64
	unknown                                 [len(Causes)]atomic.Uint64
}

// asked counts a question, which was sent or not.
func (c *counts) asked(sent bool) {
	if sent {
		c.questions.Add(1)
	} else {
		c.cacheHits.Add(1)
	}
}

// add counts a result.
func (c *counts) add(r Result) {
	switch r.Outcome {
	case NotListed:
		c.notListed.Add(1)
	case Listed:
		c.listed.Add(1)
	default:
		for i, cause := range Causes {
			if cause == r.Cause {
				c.unknown[i].Add(1)
			}
		}
	}
}

func (c *counts) load() Counts {
	n := Counts{
		Questions: c.questions.Load(), CacheHits: c.cacheHits.Load(),
		NotListed: c.notListed.Load(), Listed: c.listed.Load(),
		Unknown: map[Cause]uint64{},
	}
	for i, cause := range Causes {
		n.Unknown[cause] = c.unknown[i].Load()
	}
	return n
}

func (l *list) status() Status {
	s := l.state
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		Name: l.Name, Zone: l.Zone,
		State: s.is, Reason: s.why, Warning: s.warning, Since: s.since,
		Checked: s.checked, NextCheck: s.next,
		Counts: s.counts.load(),
	}
}
