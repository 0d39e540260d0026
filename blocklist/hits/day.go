package hits

import "time"

// Day is a day in UTC, counted from 1970-01-01. Zero means none.
type Day uint16

const secondsPerDay = 24 * 60 * 60

// DayOf returns the day of a time. Times before 1970 and after 2149 have the first and
// the last day.
func DayOf(t time.Time) Day {
	return Day(min(max(t.Unix()/secondsPerDay, 0), 1<<16-1))
}

// Time returns the beginning of the day.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// String returns the day as in 2026-12-31, or "never" for zero.
func (d Day) String() string {
	if d == 0 {
		return "never"
	}
	return d.Time().Format(time.DateOnly)
}
