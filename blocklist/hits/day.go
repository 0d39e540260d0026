package hits

import "time"

// Day is a day of UTC, counted from 1970-01-01. Zero is no day.
type Day uint16

const secondsPerDay = 24 * 60 * 60

// DayOf returns the day of a time. Those before 1970 and after 2149 are the first and
// the last there is.
func DayOf(t time.Time) Day {
	return Day(min(max(t.Unix()/secondsPerDay, 0), 1<<16-1))
}

// Time returns when the day began.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// String returns the day as in 2026-12-31, "never" where there is none.
func (d Day) String() string {
	if d == 0 {
		return "never"
	}
	return d.Time().Format(time.DateOnly)
}
