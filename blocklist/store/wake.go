package store

import "time"

// This file says what makes the Store look at its lists although no file has changed:
// entries expire, and an index turns out to be damaged.

// wakeLoop makes the loop decide again what to do when.
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
	var at int64
	if !next.IsZero() {
		at = next.UnixMicro()
	}
	if s.expiry.Swap(at) != at {
		s.wakeLoop()
	}
}

// nextExpiry returns what noteExpiry has noted; zero: never.
func (s *Store) nextExpiry() time.Time {
	if at := s.expiry.Load(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}
