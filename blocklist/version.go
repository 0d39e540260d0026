package blocklist

import (
	"slices"
	"sync/atomic"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
)

// version is one list as it was read, whole and good. It is immutable, but for
// what it learns of itself.
type version struct {
	segment *segment.Segment // nil: no entries
	stamps  []stamp
	content

	bitsAt   bitsPlace // where the list's bits for the filter are kept
	readOnly bool      // they are only looked for there

	// pending is the name of the segment in the state directory, under the Store's
	// lock, until the version goes live; "" if it need not move.
	pending string

	// kept says that the state directory has it.
	kept bool

	// fresh is a version that was read from its files, and not opened.
	fresh bool

	// stale is a version that another build of the program made, which may have
	// read the list differently. It serves until the list was read again.
	stale bool

	parts // of the filter

	// damaged is set by the first lookup that meets damage.
	damaged atomic.Bool
}

// content is what reading a list's files has told, apart from the entries. It is
// kept beside them.
type content struct {
	Loaded time.Time // when it was read

	// Pause is how long after the end of an entry's time the list is read
	// again. Lookups know that the time is over, so there is no hurry; and in a
	// long list something may end every second.
	Pause time.Duration

	// Counts of entries and lines, see [ListStats].
	Entries, Exceptions, Invalid, Unsupported, Expired, Protected int

	Files    []FileStats
	Problems []FileProblem
}

// nothing is the version of an optional list that has none.
var nothing = new(version)

// index is the version's segment, an empty one where it has none.
func (v *version) index() *segment.Segment {
	if v.segment == nil {
		return &noEntries
	}
	return v.segment
}

var noEntries segment.Segment

// keys is how many keys the version has.
func (v *version) keys() uint64 { return v.index().Len() }

// nextUntil is when the next entry expires; zero if none does.
func (v *version) nextUntil() time.Time {
	if at := v.index().NextUntil(); at != 0 {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// over is how many of the version's entries had an end that has passed. Damage
// hides some of them.
func (v *version) over(now time.Time) (n int) {
	if until := v.nextUntil(); until.IsZero() || now.Before(until) {
		return 0
	}
	_ = v.segment.Records(func(r segment.Record) bool {
		if r.Until != 0 && r.Until <= now.Unix() {
			n++
		}
		return true
	})
	return n
}

// notes are those of all files, each once.
func (v *version) notes() (notes []string) {
	for _, f := range v.Files {
		for _, note := range f.Notes {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// current reports that the version, which may be nil, is what its files say as
// they are: they need not be read again unless they change.
func (v *version) current() bool {
	if v == nil || v.stale || v.early() || v.damaged.Load() {
		return false
	}
	due := v.due()
	return due.IsZero() || time.Now().Before(due)
}

// early reports that the clock was ahead when entries were left out whose time was
// over: it may not be.
func (v *version) early() bool { return v.Expired > 0 && time.Now().Before(v.Loaded) }

// pauses is how many times as long as reading a list takes it is left alone when
// entries have expired: then that is all that a core does for a twentieth of its
// time.
const pauses = 20

// due is when the list has to be read again since entries have expired; zero if
// none will.
func (v *version) due() time.Time {
	until := v.nextUntil()
	if until.IsZero() {
		return until
	}
	return until.Add(v.Pause)
}

// entriesOf is how many entries the version has from a file, or for "" from all.
func (v *version) entriesOf(path string) int {
	if v == nil {
		return 0
	}
	if path == "" {
		return v.Entries
	}
	if i := slices.IndexFunc(v.Files, func(f FileStats) bool { return f.Path == path }); i >= 0 {
		return v.Files[i].Entries
	}
	return 0
}

// readOptions is how a list's files are read. Lists with equal options get equal
// versions from equal files.
type readOptions struct {
	listfile.Options
	noExceptions bool
	protect      string // names that its entries may not cover, see [protected]
	hold         bool   // such an entry has the whole list held
}

func (c *Config) readOptions(l *List) readOptions {
	o := readOptions{
		Options: listfile.Options{
			Allow:             l.Type == Allow,
			Exact:             l.Exact,
			AllowPublicSuffix: l.AllowPublicSuffix,
			Format:            l.Format,
			Column:            l.Column,
			MaxBytes:          l.maxBytes(),
		},
		noExceptions: c.FilterOnly,
	}
	if c.protected != nil && l.Type == Block && l.OnProtected != AcceptProtected {
		o.protect = c.protected.names
		o.hold = l.OnProtected == HoldProtected
	}
	return o
}
