package lists

import (
	"fmt"
	"time"

	"spamgate/internal/text"
)

// parseUntil reads when an entry is to end, and writes it as a list has it: a
// date stays one, a duration is counted from now.
func parseUntil(s string, now time.Time) (string, error) {
	fail := func(what string) (string, error) {
		return "", fmt.Errorf("--until %s: %s; write a duration such as 24h or 30d, a date such as %s, or a time such as %s",
			s, what, now.AddDate(0, 1, 0).Format(time.DateOnly), now.Add(time.Hour).UTC().Format(time.RFC3339))
	}
	var end time.Time
	written := s
	if date, err := time.Parse(time.DateOnly, s); err == nil {
		end = date.AddDate(0, 0, 1)
	} else if at, err := time.Parse(time.RFC3339, s); err == nil {
		end = at
	} else if d, ok := text.ParseDays(s); ok {
		end = now.Add(d)
		written = end.UTC().Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339)
	} else {
		return fail("neither a time nor a duration")
	}
	if !end.After(now) {
		return fail("is over already")
	}
	return written, nil
}
