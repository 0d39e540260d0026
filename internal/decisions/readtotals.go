package decisions

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"spamgate/internal/sqlite"
)

// Totals returns what was decided in a span of time, the oldest first: by the minute if minutes are kept of
// the whole span, which is so for two days, or else by the hour.
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
	if since.Unix() < newest-int64(keepMinutes/time.Second) {
		step = 3600
	}
	s, err := db.Prepare("SELECT start, action, list, reason, count FROM totals WHERE step = ? AND start >= ? AND start < ? ORDER BY start")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.BindInt(1, step)
	s.BindInt(2, since.Unix()/step*step)
	s.BindInt(3, until.Unix())
	var all []Total
	for {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		row, err := s.Step()
		if err != nil || !row {
			return all, err
		}
		all = append(all, Total{time.Unix(s.Int(0), 0).UTC(), s.Text(1), s.Text(2), s.Text(3), s.Int(4)})
	}
}
