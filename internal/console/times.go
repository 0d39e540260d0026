package console

import (
	"regexp"
	"time"

	"spamgate/internal/words"
)

// parsePast parses a time in the past.
func parsePast(text string, now time.Time) (time.Time, error) {
	t, err := words.ParseSince(text, now)
	return t, typed(err)
}

// parseEnd parses when an entry ends. "" is never, which is the zero time.
func parseEnd(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := words.ParseUntil(text, now)
	return t, typed(err)
}

// typed makes an error about what a user has typed one for users.
func typed(err error) error {
	if err == nil {
		return nil
	}
	return invalid(err.Error() + ".")
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
