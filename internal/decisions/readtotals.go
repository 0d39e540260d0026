package decisions

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"spamgate/internal/sqlite"
)

// Spans of Totals that have minutes and hours. A page or an answer has at most some ten thousand of them.
const (
	minutesIn = 3 * time.Hour
	hoursIn   = 32 * 24 * time.Hour
)

// Totals returns what was decided in a span of time, the oldest first: by the minute in up to three hours
// of the last two days, else by the hour in up to 32 days, else by the day (of UTC).
func (r *Reader) Totals(ctx context.Context, since, until time.Time) ([]Total, error) {
	if _, err := r.folder.check(totalsName); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(r.folder.path(totalsName), true)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.BusyTimeout(int(writeTimeout.Milliseconds()))
	if v, err := db.Int("PRAGMA user_version"); err != nil || v != version {
		return nil, err // empty, or of a newer version
	}
	newest, err := db.Int("SELECT max(start) FROM totals WHERE step = 60")
	if err != nil {
		return nil, err
	}
	step := int64(60)
	if since.Unix() < newest-int64(keepMinutes/time.Second) || until.Sub(since) > minutesIn {
		step = 3600
	}
	s, err := db.Prepare("SELECT start, count, action, list, reason FROM totals WHERE step = ? AND start >= ? AND start < ? ORDER BY start")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	days := until.Sub(since) > hoursIn
	first := since.Unix() / step * step
	if days {
		first = first / secondsADay * secondsADay
	}
	s.BindInt(1, step)
	s.BindInt(2, first)
	s.BindInt(3, until.Unix())
	return readTotals(ctx, s, days)
}

const secondsADay = 24 * 3600

// readTotals reads totals, and adds up those of a day if days are wanted.
func readTotals(ctx context.Context, s *sqlite.Stmt, days bool) (all []Total, err error) {
	ofDay := map[alike]int{} // places in all
	for {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		row, err := s.Step()
		if err != nil || !row {
			return all, err
		}
		t := Total{time.Unix(s.Int(0), 0).UTC(), s.Text(2), s.Text(3), s.Text(4), s.Int(1)}
		if days {
			t.Start = t.Start.Truncate(secondsADay * time.Second)
			if n := len(all); n > 0 && all[n-1].Start.Before(t.Start) {
				clear(ofDay)
			}
			key := alike{action: t.Action, list: t.List, reason: t.Reason}
			if i, ok := ofDay[key]; ok {
				all[i].Count += t.Count
				continue
			}
			ofDay[key] = len(all)
		}
		all = append(all, t)
	}
}
