package decisions

import (
	"errors"
	"time"
)

// clock decides whether the time can be trusted: files and totals are not removed for their age within a
// day after the clock has jumped ahead.
type clock struct {
	seen    time.Time // when it was last asked
	trusted time.Time // from then on
}

// jump is more than the clock can advance between two looks, unless no gate ran.
const jump = 25 * time.Hour

// look notes the time, and reports whether it can be trusted.
func (c *clock) look(now time.Time) bool {
	switch {
	case now.Sub(c.seen) > jump:
		c.trusted = now.Add(24 * time.Hour)
	case c.seen.Sub(now) > jump:
		c.trusted = now
	}
	c.seen = now
	return !now.Before(c.trusted)
}

// fileBytes returns the size from which on a file is full: at least four fit.
func (l *limits) fileBytes() int64 {
	return min(fileBytes, max((l.maxBytes-l.slack())/4, 1<<20))
}

// share returns how many bytes of rows the refusals of one client by one list may have in a
// shareWindow.
func (l *limits) share() int64 {
	return max(shareLeast, l.maxBytes/2/max(1, int64(l.keep/shareWindow)))
}

// slack returns what the open file may need beyond that: a batch, and the write-ahead log.
func (l *limits) slack() int64 { return min(l.maxBytes/8, 16<<20) }

// look removes what is too old or too much, and measures what is there.
func (w *writer) look() {
	now := w.now()
	w.looked = now
	all, err := w.folder.files()
	if err != nil {
		return // writing will tell
	}
	if w.clock.seen.IsZero() {
		w.clock = w.totals.clock(now, all)
	}
	trusted := w.clock.look(now)
	w.totals.keepClock(w.clock)
	limits := w.limits.Load()
	if trusted {
		w.totals.prune(now)
		all = w.removeOld(all, now.Add(-limits.keep))
	}
	var total int64
	for i := range all {
		all[i].bytes = w.folder.size(all[i].name())
		total += all[i].bytes
	}
	room := limits.fileBytes() // which the open file may need
	if w.file != nil {
		room -= w.folder.size(w.file.name())
	}
	kept := all[:0]
	for _, f := range all {
		if total+max(room, 0)+limits.slack() > limits.maxBytes && w.remove(f) {
			total -= f.bytes
			if f.end() > w.removed.UnixNano() || w.removed.IsZero() {
				w.removed = time.Unix(0, f.end())
			}
		} else {
			kept = append(kept, f)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Bytes, w.stats.Files, w.stats.Oldest = total, len(kept), time.Time{}
	for _, f := range kept {
		if start := time.Unix(0, f.start()).UTC(); w.stats.Oldest.IsZero() || start.Before(w.stats.Oldest) {
			w.stats.Oldest = start
		}
	}
	short := !w.removed.IsZero() && w.removed.After(now.Add(-limits.keep))
	if short && !w.stats.Short {
		w.logger.Warn("the history of decisions is full, and reaches back less than it is to keep: raise [decisions] max_bytes",
			"reaches_back_to", w.stats.Oldest, "keep", limits.keep, "bytes", total)
	}
	w.stats.Short = short
}

// removeOld removes the files whose rows are all older than a time, and returns the others. A file that
// a clock has put into the future is removed with the files that were made after it.
func (w *writer) removeOld(all []file, than time.Time) (kept []file) {
	old := false // a file with a higher number was old
	for i := len(all) - 1; i >= 0; i-- {
		f := all[i]
		expired := f.end() < than.UnixNano()
		old = old || expired
		future := f.start() > w.now().Add(24*time.Hour).UnixNano()
		if !(expired || old && future) || !w.remove(f) {
			kept = append([]file{f}, kept...)
		}
	}
	return kept
}

// remove removes a file, unless somebody writes to it.
func (w *writer) remove(f file) bool {
	if w.file != nil && w.file.number == f.number {
		return false
	}
	err := w.folder.remove(f.name())
	if err != nil && !errors.Is(err, errLocked) {
		w.logger.Warn("file of the history of decisions not removed", "file", f.name(), "error", err)
	}
	return err == nil
}
