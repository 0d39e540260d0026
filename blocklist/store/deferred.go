package store

import (
	"time"

	"spamgate/blocklist/listfile"
)

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
