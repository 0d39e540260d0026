package decisions

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"spamgate/internal/sqlite"
)

// Bounds of a Page.
const (
	defaultLimit = 100
	maxLimit     = 1000

	findTime  = 3 * time.Second // for one Page, or four fifths of what is left of the context's time
	findBytes = 8 << 20         // of its decisions, each of which may have 60 KiB
)

// Find returns the newest decisions that match a Query. If they are large, the Page ends before the
// Limit. If the time for it is over, the Page is incomplete.
func (r *Reader) Find(ctx context.Context, q Query) (Page, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = min(limit, maxLimit)
	page := Page{Decisions: []Decision{}}
	end := endOf(ctx)
	files, err := r.files()
	if err != nil {
		return Page{}, err
	}
	bytes := 0
	next, err := r.walk(ctx, files, &q, func(d Decision, pos place) bool {
		pos.n++ // this one, too
		page.Decisions, page.Places = append(page.Decisions, d), append(page.Places, pos.cursor())
		bytes += d.size()
		return len(page.Decisions) < limit && bytes < findBytes
	}, func() bool {
		page.Incomplete = time.Now().After(end)
		return !page.Incomplete
	})
	if err != nil {
		return Page{}, err
	}
	page.Next = next
	page.Incomplete = page.Incomplete && next != "" && len(page.Decisions) < limit
	page.Reach, err = r.reach(files)
	return page, err
}

// endOf returns when a search for one Page ends.
func endOf(ctx context.Context) time.Time {
	limit := findTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)*4/5)
	}
	return time.Now().Add(limit)
}

// Each calls f for each decision that matches a Query, the newest first. Limit does not count.
// It reads the history in parts, so that writers can remove what it has read.
func (r *Reader) Each(ctx context.Context, q Query, f func(Decision) error) error {
	for {
		n := 0
		var failed error
		end := time.Now().Add(findTime)
		files, err := r.files()
		if err != nil {
			return err
		}
		next, err := r.walk(ctx, files, &q, func(d Decision, _ place) bool {
			n++
			failed = f(d)
			return failed == nil && n < maxLimit
		}, func() bool { return time.Now().Before(end) })
		if err = errors.Join(failed, err); err != nil || next == "" {
			return err
		}
		q.Before = next
	}
}

// walk calls found for each decision that matches until it returns false, and more after each step
// until that returns false. It returns where to continue; "" if it has seen everything.
func (r *Reader) walk(ctx context.Context, files []file, q *Query, found func(Decision, place) bool, more func() bool) (next Cursor, err error) {
	before := place{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	if q.Before != "" {
		if before, err = q.Before.place(); err != nil {
			return "", err
		}
	}
	var all []*search
	defer func() {
		for _, s := range all {
			s.close()
		}
	}()
	for _, file := range files {
		all = append(all, newSearch(r, file, q, before))
	}
	for {
		newest := newestOf(all)
		if newest == nil {
			return "", nil
		}
		pos := newest.next
		d, ok, err := newest.step()
		if err != nil {
			if err = skippable(err); err != nil {
				return "", fmt.Errorf("history %s: %w", newest.file.name(), err)
			}
			newest.done = true
			continue
		}
		if ok && !found(d, pos) {
			if newestOf(all) == nil {
				return "", nil
			}
			return pos.cursor(), nil
		}
		if err := ctx.Err(); err != nil {
			return "", context.Cause(ctx)
		}
		if !more() {
			if newest = newestOf(all); newest == nil {
				return "", nil
			}
			pos = newest.next
			pos.n++ // this one, too
			if pos.before(before) {
				return pos.cursor(), nil
			} // otherwise the next call would begin where this one did
		}
	}
}

// skippable returns nil for errors of one file that do not matter to the others.
func skippable(err error) error {
	if isDamaged(err) {
		return nil
	}
	return err
}

// isDamaged reports whether an error says that a file cannot be used any more.
func isDamaged(err error) bool {
	return sqlite.IsDamaged(err) || errors.Is(err, sqlite.ErrFault) || errors.Is(err, errPostings) || errors.Is(err, errMissing) ||
		errors.Is(err, errSchema)
}

// newestOf returns the search whose next row is the newest.
func newestOf(all []*search) (newest *search) {
	for _, s := range all {
		if !s.done && (newest == nil || newest.next.before(s.next)) {
			newest = s
		}
	}
	return newest
}

// reach returns the time of the oldest decision, nil if there is none.
func (r *Reader) reach(files []file) (reach *time.Time, err error) {
	for _, file := range files {
		if reach != nil && file.start() > reach.UnixNano() {
			continue
		}
		offset, err := r.oldest(file)
		if err != nil {
			return nil, err
		}
		if offset != 0 && (reach == nil || offset < reach.UnixNano()) {
			t := time.Unix(0, offset).UTC()
			reach = &t
		}
	}
	return reach, nil
}

// oldest returns the time of the oldest row of a file, 0 if there is none.
func (r *Reader) oldest(file file) (int64, error) {
	name := file.name()
	r.mu.Lock()
	offset := r.first[name]
	r.mu.Unlock()
	if offset != 0 {
		return offset, nil
	}
	f, err := r.open(file)
	if err == nil {
		offset, _, err = f.int(selectFirst)
		r.release(f)
	}
	if err == errSkip || err != nil && skippable(err) == nil {
		return 0, nil
	}
	if err == nil && offset != 0 {
		r.mu.Lock()
		r.first[name] = offset
		r.mu.Unlock()
	}
	return offset, err
}
