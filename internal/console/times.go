package console

import (
	"fmt"
	"regexp"
	"time"

	"spamgate/internal/text"
)

// parseSince parses a time in the past: RFC 3339, a day (UTC), or a duration before now such as
// "2d", "12h" or "1w". The error is for users.
func parseSince(s string, now time.Time) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil {
		ago, ok := text.ParseDays(s)
		if !ok || ago <= 0 {
			return time.Time{}, errMoment(s, now)
		}
		t = now.Add(-ago)
	}
	if t.After(now) {
		return time.Time{}, invalid(fmt.Sprintf("%q is still to come.", s))
	}
	return t, nil
}

// errMoment says how a time is written.
func errMoment(s string, now time.Time) error {
	return invalid(fmt.Sprintf("%q is not a time: write a duration such as 12h or 7d, a day such as %s, or a time such as %s.",
		s, now.UTC().Format(time.DateOnly), now.UTC().Format(time.RFC3339)))
}

// parseUntil parses when an entry ends: RFC 3339, a day, which counts to its end (UTC), or a
// duration from now such as "1h" or "7d". "" is never, which is the zero time. The error is for
// users.
func parseUntil(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	end, err := time.Parse(time.RFC3339, s)
	if err != nil {
		if end, err = time.Parse(time.DateOnly, s); err == nil {
			end = end.AddDate(0, 0, 1)
		}
	}
	if err != nil {
		d, ok := text.ParseDays(s)
		if !ok {
			return end, errMoment(s, now)
		}
		end = now.Add(d)
	}
	return checkUntil(end, s, now)
}

// checkUntil returns the end of an entry in whole seconds, as lists have it, unless it is over. The
// error calls it s.
func checkUntil(end time.Time, s string, now time.Time) (time.Time, error) {
	if !end.After(now) {
		return end, invalid(fmt.Sprintf("until %s: that is over already.", s))
	}
	return end.UTC().Add(time.Second - 1).Truncate(time.Second), nil
}

// listTime matches a time as lists and the audit log have it.
var listTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// localTimes returns a text with its times as the pages write them.
func localTimes(text string) string {
	return listTime.ReplaceAllStringFunc(text, func(s string) string {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return s
		}
		return t.Local().Format("2006-01-02 15:04")
	})
}

// untilTime writes the end of an entry.
func untilTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	tomorrow := now.AddDate(0, 0, 1)
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case t.Year() == tomorrow.Year() && t.YearDay() == tomorrow.YearDay():
		return "tomorrow, " + t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// shortTime writes a time as briefly as it is clear: without the day if it is today.
func shortTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Year() != now.Year():
		return t.Format("2006-01-02 15:04")
	case t.YearDay() != now.YearDay():
		return t.Format("Jan 2 15:04")
	}
	return t.Format(time.TimeOnly)
}
