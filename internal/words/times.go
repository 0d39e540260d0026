// Package words parses what people type, in flags, forms and parameters of the API: times, sizes,
// numbers and actions. A day is one of this machine's time zone, as in what the gate prints.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses a duration, which may also be one of days or weeks: "90s", "12h", "7d", "2w".
func ParseDuration(s string) (time.Duration, bool) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			return time.Duration(n) * length, err == nil && n <= uint64(math.MaxInt64/length)
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// ParseSince parses a time in the past: a duration before now, the beginning of a day, or a time (RFC 3339).
func ParseSince(s string, now time.Time) (time.Time, error) {
	t, _, err := parseTime(s, now, -1)
	switch {
	case err != nil:
		return t, err
	case t.After(now):
		return t, fmt.Errorf("%q is still to come: write a time that is over", s)
	case t.Equal(now):
		return t, fmt.Errorf("%q is now: write a time that is over, such as 1d or 30d", s)
	}
	return t, nil
}

// ParseUntil parses when an entry ends: a duration from now, the end of a day, or a time (RFC 3339).
// It returns whole seconds, as lists have them.
func ParseUntil(s string, now time.Time) (time.Time, error) {
	t, day, err := parseTime(s, now, 1)
	if day {
		t = t.AddDate(0, 0, 1)
	}
	if err == nil && !t.After(now) {
		err = fmt.Errorf("%q is over already", s)
	}
	return t.UTC().Add(time.Second - 1).Truncate(time.Second), err
}

// parseTime parses a time. A duration counts in the direction from now. It reports whether s is a day,
// of which it returns the beginning.
func parseTime(s string, now time.Time, direction time.Duration) (t time.Time, day bool, err error) {
	if t, err = time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, true, nil
	}
	if t, err = time.Parse(time.RFC3339, s); err == nil { // also with a fraction of a second
		return t, false, nil
	}
	if d, ok := ParseDuration(s); ok && d >= 0 {
		return now.Add(direction * d), false, nil
	}
	return t, false, fmt.Errorf("%q is not a time: write a duration such as 12h or 7d, a day such as %s, or a time such as %s",
		s, now.Local().Format(time.DateOnly), now.UTC().Format(time.RFC3339))
}
