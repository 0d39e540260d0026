package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/dirwatch"
)

// scanResult is the result of looking at a list's files. It is immutable. If err is set, good
// is the version that serves nevertheless.
type scanResult struct {
	good   *version       // what serves; nil: none yet
	stamps []stamp        // the files as they were seen, good or not
	err    error          // why the files do not serve; nil if good is what they hold
	since  time.Time      // when err came up
	pin    *blocklist.Pin // nil: the list is not pinned
}

// version returns what serves, the emptyVersion if nothing does.
func (r *scanResult) version() *version {
	if r.good == nil {
		return emptyVersion
	}
	return r.good
}

// failed returns the result after a failure: the version that served goes on serving.
func (r *scanResult) failed(stamps []stamp, err error) scanResult {
	since := r.since
	if r.err == nil {
		since = time.Now()
	}
	return scanResult{good: r.good, stamps: stamps, err: err, since: since}
}

// source is a list, and how far it has been read.
type source struct {
	list    *List
	options readOptions
	live    scanResult // what serves
	logged  string     // the error that was last logged

	loggedPin *blocklist.Pin // likewise

	opener    Opener
	state     *state
	protected *Protected
	follow    func(path string, from io.Reader) io.Reader // see [Config.Follow]; may be nil
	advice    func(list string, r Remedy) string          // see [Config.Advise]; may be nil
	kept      []stamp                                     // as the state directory has them; nil: as the version does
	keptAs    string                                      // the list that the version is kept of, until it is kept of this one; "": this one

	// served are the versions that went live, the oldest first, and noted the one that
	// was noted last; see noteServed.
	served []servedVersion
	noted  *version

	// accepted are sums of contents that were accepted, besides those that the
	// state directory knows of.
	accepted []string

	mending repairAttempt // what was last mended in vain

	deferred bool // it was left unread at the start, as was logged

	// before is what the list served when it was read in another way, to
	// compare with; nil but while a configuration is loaded.
	before *version

	// writing is when the wait for a writer began, broken when files were first found
	// missing or changed. Zero means that the source does not wait.
	writing, broken time.Time
}

// sameFiles reports whether both read the same files in the same way. How large a file may be
// does not matter: like the guards it only decides what is held.
func (s *source) sameFiles(t *source) bool {
	ours, theirs := s.options, t.options
	ours.MaxBytes, theirs.MaxBytes = 0, 0
	return ours == theirs && slices.Equal(s.list.Paths, t.list.Paths)
}

// sameName reports whether both are the list of one name.
func (s *source) sameName(t *source) bool { return s.list.Name == t.list.Name }

// debounce says how long a change waits until it counts. A file that was changed less than
// quiet ago may still be written, and a missing one may return, as with some editors. A file
// that keeps changing counts after atMost. The zero debounce does not wait.
type debounce struct{ quiet, atMost time.Duration }

// readAttempts is how often a list is read again that changes while it is read.
const readAttempts = 3

// scan looks at the source's files, and reads them if they have changed. Staged is an earlier
// result that has not gone live, or nil. It changes only the fields writing and broken of the
// source.
//
// If a change has to wait, the result is the live one and again is when to look next; else
// again is zero.
func (s *source) scan(ctx context.Context, watch func(dir, name string), staged *scanResult, p debounce) (r scanResult, again time.Time) {
	if s.list.Zone != "" {
		return scanResult{}, time.Time{} // it has no files
	}
	s.live.version().index.Segment().Recheck()
	r, again = s.scanFiles(ctx, watch, staged, p)
	r = s.obeyPin(ctx, r, staged)
	switch {
	case r.err == nil || r.good == nil:
	case r.good.index.Damaged():
		r.good = s.mend(ctx, r.good, staged)
	case r.good.stale:
		r.good = s.readAgain(ctx, r.good, staged)
	}
	return r, again
}

// scanFiles does the work of scan, except for the repair of a damaged index.
func (s *source) scanFiles(ctx context.Context, watch func(dir, name string), staged *scanResult, p debounce) (r scanResult, again time.Time) {
	var stamps []stamp
	paths, err := dirwatch.Find(s.list.Paths, watch)
	if err == nil {
		stamps, err = s.opener.statFiles(paths)
	}
	if err == nil {
		err = s.tooBig(stamps)
	}
	if s.begins(err) {
		return scanResult{good: emptyVersion}, again
	}
	err = s.missing(err)
	if err == nil && !s.mustRead() && sameAttributes(s.live.stamps, stamps) && !slices.ContainsFunc(s.live.stamps, stamp.racy) {
		s.writing, s.broken = time.Time{}, time.Time{}
		return s.live, again
	}
	if err == nil {
		if err := s.killed(stamps); err != nil {
			return s.live.failed(stamps, err), again
		}
		if s.defers(paths) {
			return s.live, again
		}
	}
	if wait := s.unsettled(stamps, err, p); wait > 0 {
		return s.live, time.Now().Add(wait)
	}
	if err == nil {
		r, err = s.read(ctx, stamps, staged)
	}
	for n := 1; n < readAttempts && errors.Is(err, ErrChanged); n++ {
		if stamps, err = s.opener.statFiles(paths); err == nil {
			r, err = s.read(ctx, stamps, staged)
		}
	}
	if errors.Is(err, ErrChanged) {
		if wait := s.waitForWriter(p.quiet, p); wait > 0 {
			return s.live, time.Now().Add(wait)
		}
	}
	s.writing = time.Time{}
	if err != nil {
		return s.live.failed(r.stamps, err), again
	}
	return r, again
}

// unsettled returns how much longer to wait before what was found, or the error, counts; zero
// or less: no longer.
func (s *source) unsettled(stamps []stamp, err error, p debounce) time.Duration {
	if p.quiet == 0 {
		return 0
	}
	now := time.Now()
	if err != nil && errorText(err) != errorText(s.live.err) || err == nil && s.live.lacks(stamps) {
		if s.broken.IsZero() {
			s.broken = now
		}
		if wait := p.quiet - now.Sub(s.broken); wait > 0 {
			return wait
		}
	} else {
		s.broken = time.Time{}
	}
	if err == nil && (s.list.Whole || sameAttributes(s.live.stamps, stamps)) {
		return 0 // nobody has written since they were read, also if their clock is ahead of ours
	}
	quiet := p.quiet + clockTick
	var wait time.Duration
	for i := range stamps {
		wait = max(wait, quiet-age(stamps[i].Change, now))
	}
	return s.waitForWriter(min(wait, quiet), p) // more where the file's clock is ahead
}

// clockTick is how far a file's time may lag behind the clock. Linux takes the times of files from
// a clock that advances with each tick of the kernel, which is up to 10 ms long
// (CONFIG_HZ).
const clockTick = 10 * time.Millisecond

// waitForWriter limits a wait to what is left of the longest one.
func (s *source) waitForWriter(wait time.Duration, p debounce) time.Duration {
	if wait <= 0 {
		return 0
	}
	now := time.Now()
	if s.writing.IsZero() {
		s.writing = now
	}
	return min(wait, p.atMost-now.Sub(s.writing))
}

// lacks reports whether a file that serves is missing from the stamps.
func (r *scanResult) lacks(stamps []stamp) bool {
	return slices.ContainsFunc(r.version().stamps, func(served stamp) bool {
		return !slices.ContainsFunc(stamps, func(s stamp) bool { return s.Path == served.Path })
	})
}

// tooBig returns an error if a file is too big to be read.
func (s *source) tooBig(stamps []stamp) error {
	for _, f := range stamps {
		if err := tooBig(f.Size, s.options.MaxBytes); err != nil {
			return &fs.PathError{Op: "read", Path: f.Path, Err: err}
		}
	}
	return nil
}

// mustRead reports whether the files have to be read although they have not changed: what was
// made of them is of no use, or what was held has been accepted.
func (s *source) mustRead() bool {
	if s.live.err == nil {
		return s.live.good != nil && !s.live.good.current()
	}
	if errors.Is(s.live.err, ErrPinned) {
		pin := s.pin()
		return pin == nil || pin.Sum == sumOf(s.live.stamps)
	}
	return acceptable(s.live.err) && s.isAccepted(sumOf(s.live.stamps))
}

// isAccepted reports whether a content was accepted.
func (s *source) isAccepted(sum string) bool {
	if sum == "" {
		return false
	}
	if slices.Contains(s.accepted, sum) {
		return true
	}
	if !s.state.keeping() {
		return false
	}
	contents, err := acceptedContents(s.state.tree, ListName(s.list.Name))
	if err != nil {
		s.state.say(err)
	}
	return slices.Contains(contents, acceptedContent{sum, s.options.sum(s.list)})
}

// read reads the files that the stamps are of, unless what they hold is known. With an error
// the result has stamps alone, if anything.
func (s *source) read(ctx context.Context, stamps []stamp, staged *scanResult) (scanResult, error) {
	var err error
	if s.looksKnown(stamps, staged) {
		for i := range stamps {
			if stamps[i], err = s.opener.readStamped(ctx, stamps[i].Path, nil); err != nil {
				return scanResult{}, err
			}
		}
	}
	seen := scanResult{stamps: stamps}
	switch good := s.live.good; {
	case good.current() && sameContent(good.stamps, stamps):
		seen.good = good
	case s.live.err != nil && sameContent(s.live.stamps, stamps) && !s.mustRead():
		err = s.live.err
	case staged != nil && sameContent(staged.stamps, stamps) && (staged.err == nil && staged.good.current() || staged.err != nil && !errors.Is(staged.err, ErrPinned) && !s.isAccepted(sumOf(stamps))):
		seen.good, err = staged.good, staged.err
	default:
		seen.good, seen.stamps, err = s.build(ctx, stamps)
	}
	return seen, err
}

// looksKnown reports whether files of these sizes were read before, to their end. Then checking
// whether they hold the same may spare making an index of them.
func (s *source) looksKnown(stamps []stamp, staged *scanResult) bool {
	sameSizes := func(known []stamp) bool {
		return sumOf(known) != "" && equalStamps(known, stamps, func(p, q *stamp) bool { return p.Size == q.Size })
	}
	return s.live.good.current() && sameSizes(s.live.good.stamps) ||
		s.live.err != nil && sameSizes(s.live.stamps) || staged != nil && sameSizes(staged.stamps)
}
