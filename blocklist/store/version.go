package store

import (
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
)

// version is one list as it was read, complete and good. It is immutable, except for what it
// learns of itself.
type version struct {
	index  *blocklist.Index
	bits   *bitsFile // of the index; nil for the emptyVersion
	stamps []stamp
	content

	// pending is the name of the segment in the state directory, under the Store's
	// lock, until the version goes live; "" if it need not move.
	pending string

	// kept says that the state directory has it.
	kept bool

	// fresh says that the version was read from its files, and not opened.
	fresh bool

	// accepted says that somebody accepted its content, forced that it would have been
	// held for its size otherwise.
	accepted, forced bool

	// stale says that another build of the program made the version, which may have
	// read the list differently. It serves until the list was read again.
	stale bool
}

// newVersion returns a version of what an index was made of.
func newVersion(s *segment.Segment, c content, stamps []stamp, bits *bitsFile) *version {
	files := make([]string, len(c.Files))
	for i := range c.Files {
		files[i] = c.Files[i].Path
	}
	return &version{index: blocklist.NewIndex(s, files, bits), bits: bits, stamps: stamps, content: c}
}

// content is what reading a list's files has shown, apart from the entries. It is kept beside them.
type content struct {
	Loaded time.Time // when it was read

	// Pause is how long after an entry has expired the list is read again. Lookups
	// ignore expired entries, so there is no hurry; and in a long list something may
	// expire every second.
	Pause time.Duration

	// Counts of entries and lines, see [blocklist.ListStats].
	Entries, Exceptions, Invalid, Unsupported, Expired, Protected, Disallowed, Skipped int

	// Ending counts the entries, exceptions apart, that expire before the first of
	// [horizons], from then to the second and so on, and later.
	Ending [len(horizons) + 1]int

	Files    []blocklist.FileStats
	Problems []blocklist.FileProblem
}

// emptyVersion is the version of an optional list that has none.
var emptyVersion = &version{index: blocklist.NewIndex(nil, nil, nil)}

// nextUntil returns when the next entry expires; zero if none does.
func (v *version) nextUntil() time.Time {
	if offset := v.index.Segment().NextUntil(); offset != 0 {
		return time.Unix(offset, 0)
	}
	return time.Time{}
}

// over returns how many of the version's entries have expired. Damage hides some of them.
func (v *version) over(now time.Time) (n int) {
	if until := v.nextUntil(); until.IsZero() || now.Before(until) {
		return 0
	}
	_ = v.index.Segment().Records(func(r segment.Record) bool {
		if r.Until != 0 && r.Until <= now.Unix() {
			n++
		}
		return true
	})
	return n
}

// notes returns the notes on all files, each once.
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

// current reports whether the version, which may be nil, is what its files say: they need not be
// read again unless they change.
func (v *version) current() bool {
	if v == nil || v.stale || v.early() || v.index.Damaged() {
		return false
	}
	due := v.due()
	return due.IsZero() || time.Now().Before(due)
}

// early reports whether the clock was ahead when expired entries were left out: they may not have
// expired yet.
func (v *version) early() bool { return v.Expired > 0 && time.Now().Before(v.Loaded) }

// pauses is the ratio of the pause to the time that reading a list takes: a list in which
// something expires all the time takes a twentieth of a core.
const pauses = 20

// due returns when the list has to be read again since entries have expired; zero if none
// will.
func (v *version) due() time.Time {
	until := v.nextUntil()
	if until.IsZero() {
		return until
	}
	return until.Add(v.Pause)
}

// entriesOf returns how many entries the version has from a file; "" stands for all files.
func (v *version) entriesOf(path string) int {
	if v == nil {
		return 0
	}
	if path == "" {
		return v.Entries
	}
	if i := slices.IndexFunc(v.Files, func(f blocklist.FileStats) bool { return f.Path == path }); i >= 0 {
		return v.Files[i].Entries
	}
	return 0
}

// readOptions are how a list's files are read. Lists with equal options get equal versions from
// equal files.
type readOptions struct {
	listfile.Options
	noExceptions bool
	protect      string // names that its entries may not cover, see [Protected]
	hold         bool   // such an entry has the whole list held

	// What a list from a URL leaves out, see [Omissions].
	nullSender, anywhere bool
}

func (c *Config) readOptions(l *List) readOptions {
	o := readOptions{
		Options: listfile.Options{
			Allow:             l.Type == blocklist.Allow,
			Exact:             l.Exact,
			AllowPublicSuffix: l.AllowPublicSuffix,
			PerRecipient:      l.PerRecipient,
			Format:            l.Format,
			Column:            l.Column,
			Discard:           l.Action.Drops(),
			MaxBytes:          l.maxBytes(),
		},
		noExceptions: c.FilterOnly,
	}
	omits := l.Omissions(c.protected)
	o.nullSender, o.anywhere = omits.nullSender, omits.anywhere
	if omits.protected != nil {
		o.protect = omits.protected.names
		o.hold = l.OnProtected == HoldProtected
	}
	return o
}
