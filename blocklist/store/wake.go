package store

import "time"

// This file is about what makes the Store look at its lists although no file has
// changed: entries expire, and an index turns out to be damaged.

// rouse has the loop think again about what is to be done when.
func (s *Store) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// rebuild asks for the lists to be read again whose indexes are damaged. Lookups
// call it.
func (s *Store) rebuild() {
	s.damage.Store(true)
	s.rouse()
}

// noteExpiry finds out when a list is due to be read again since an entry has
// expired. A list of which the version
// on disk does not serve is not waited for: lookups pass over what has expired,
// and reading it again would not change what serves.
func (s *Store) noteExpiry() {
	var next time.Time
	for _, src := range s.sources {
		due := src.live.version().due()
		if !due.IsZero() && src.live.err == nil && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	var at int64
	if !next.IsZero() {
		at = next.UnixMicro()
	}
	if s.expiry.Swap(at) != at {
		s.rouse()
	}
}

// nextExpiry is what noteExpiry found; zero: never.
func (s *Store) nextExpiry() time.Time {
	if at := s.expiry.Load(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}
